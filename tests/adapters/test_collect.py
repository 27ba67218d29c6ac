"""Reading of folders that a hostile program left, and laying out of workspaces."""

import os
import socket
from pathlib import Path

import pytest

from loopwright.adapters.collect import MAX_FILES, WorkspaceTooLarge, collect, lay_out
from loopwright.contracts.failures import TaskError
from loopwright.contracts.workspaces import MIB, Workspace, WorkspaceFile


def paths(folder: Path) -> list[str]:
    return [file.path for file in collect(folder, max_bytes=MIB).files]


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("hidden")
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "file").symlink_to(secret / "key")
    (folder / "dir").symlink_to(secret)
    (folder / "loop").symlink_to("loop")
    assert paths(folder) == []


def test_pipes_and_sockets_do_not_block_and_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    (tmp_path / "file").write_bytes(b"1")
    assert paths(tmp_path) == ["file"]


def test_sparse_files_count_with_their_holes(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(WorkspaceTooLarge, match="bytes"):
        collect(tmp_path, max_bytes=MIB)


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0").touch()
    for index in range(1, MAX_FILES + 1):
        os.link(tmp_path / "0", tmp_path / str(index))
    with pytest.raises(WorkspaceTooLarge, match="files"):
        collect(tmp_path, max_bytes=MIB)


def test_what_lies_too_deep_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("deep", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    assert paths(tmp_path) == ["file"]


@pytest.mark.parametrize("name", [b"a\nb", b"\xff\xfe", b"-rf", b"a\\b", b" ", b"\x1b[31m"])
def test_hostile_names_come_back_as_they_are(tmp_path: Path, name: bytes) -> None:
    opened = os.open(os.fsencode(tmp_path) + b"/" + name, os.O_CREAT | os.O_WRONLY)
    os.close(opened)
    assert paths(tmp_path) == [name.decode("utf-8", "surrogateescape")]


def test_unreadable_file_is_read_and_privileges_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    (tmp_path / "file").chmod(0o6111)
    (found,) = collect(tmp_path, max_bytes=MIB).files
    assert found == WorkspaceFile(path="file", data=b"1", executable=True)


def test_files_come_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    for name in ("b", "a/z", "a.txt", "é", "Z"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert paths(tmp_path) == ["Z", "a.txt", "a/z", "b", "é"]


def test_workspace_laid_out_and_collected_is_the_same(tmp_path: Path) -> None:
    given = Workspace.of({"a/b/c": b"1", "a/d": b"", "\udcff": b"2"})
    lay_out(given, tmp_path, owner=os.getuid())
    assert collect(tmp_path, max_bytes=MIB).digest == given.digest
    assert (tmp_path / "a" / "b" / "c").stat().st_mtime == 0
    assert tmp_path.stat().st_mtime == 0


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "a/b"), ("a/b", "a")])
def test_path_used_twice_is_refused(tmp_path: Path, paths: tuple[str, str]) -> None:
    files = tuple(WorkspaceFile(path=path, data=b"") for path in paths)
    with pytest.raises(TaskError, match="cannot be laid out"):
        lay_out(Workspace(files=files), tmp_path, owner=os.getuid())
