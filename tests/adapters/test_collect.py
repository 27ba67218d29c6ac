"""Reading of folders that a hostile program left, and laying out of workspaces."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from loopwright.adapters.collect import (
    MAX_DEPTH,
    MAX_FILES,
    MAX_PATH_BYTES,
    WorkspaceTooLarge,
    lay_out,
    open_folder,
)
from loopwright.adapters.mounts import mount_tmpfs, unmount
from loopwright.contracts.failures import TaskError
from loopwright.contracts.workspaces import EntryKind, Workspace, WorkspaceFile
from tests.adapters.jails import needs_jails
from tests.adapters.workspaces import NAMES, collected, laid_out, random_workspace


def paths(folder: Path) -> list[str]:
    return [file.path for file in collected(folder).workspace.files]


def skipped(folder: Path) -> list[str]:
    return [skip.path for skip in collected(folder).skipped]


@pytest.mark.parametrize(
    "target",
    ["/etc/shadow", "/proc/self/environ", "..", "../x", "a/../../x", "a/b/..", "", "x" * 2000],
)
def test_links_that_may_lead_out_are_skipped_and_told(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").symlink_to(target or "/")
    assert paths(tmp_path) == []
    assert skipped(tmp_path) == ["file"]


@pytest.mark.parametrize("target", ["x", "a/x", "../x", "../b/./x", "loop"])
def test_links_that_stay_inside_are_kept_as_links(tmp_path: Path, target: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(target)
    (found,) = collected(tmp_path).workspace.files
    assert (found.kind, found.target, found.data) == (EntryKind.LINK, target, None)


def test_links_are_never_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("hidden")
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "dir").symlink_to(tmp_path / "secret")
    (folder / "here").symlink_to(".")
    assert paths(folder) == ["here"]
    assert skipped(folder) == ["dir"]


def test_folder_behind_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(NotADirectoryError), open_folder(tmp_path / "link"):
        pass


def test_pipes_and_sockets_do_not_block_and_are_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    (tmp_path / "file").write_bytes(b"1")
    assert paths(tmp_path) == ["file"]
    assert skipped(tmp_path) == ["pipe", "socket"]


@needs_jails
def test_folder_of_another_file_system_is_skipped_and_told(tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    (tmp_path / "file").touch()
    mount_tmpfs(tmp_path / "mounted", "size=1m")
    try:
        assert paths(tmp_path) == ["file"]
        assert skipped(tmp_path) == ["mounted"]
    finally:
        unmount(tmp_path / "mounted")


@needs_jails
def test_overlay_is_collected_as_its_programs_see_it(tmp_path: Path) -> None:
    lower, upper, merged = (tmp_path / name for name in ("lower", "upper", "merged"))
    laid_out(Workspace.of({"a/kept": b"1", "gone": b"1", "edited": b"1"}), lower)
    upper.mkdir()
    merged.mkdir()
    mount_tmpfs(upper, "size=1m")
    try:
        for name in ("files", "work"):
            (upper / name).mkdir()
        layers = f"lowerdir={lower},upperdir={upper}/files,workdir={upper}/work"
        subprocess.run(("mount", "-t", "overlay", "-o", layers, "tests", merged), check=True)
        try:
            (merged / "gone").unlink()
            (merged / "edited").write_bytes(b"2")
            found = collected(merged)
        finally:
            unmount(merged)
    finally:
        unmount(upper)
    assert found.workspace == Workspace.of({"a/kept": b"1", "edited": b"2"})
    assert found.skipped == ()


def test_sparse_files_count_with_their_holes(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(WorkspaceTooLarge, match="bytes"):
        collected(tmp_path)


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0").touch()
    for index in range(1, MAX_FILES + 1):
        os.link(tmp_path / "0", tmp_path / str(index))
    with pytest.raises(WorkspaceTooLarge, match="files"):
        collected(tmp_path)


def nest(folder: Path, num_folders: int, name: str = "d") -> None:
    """Put a file into folders nested this deep."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(num_folders):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("deep", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def test_what_lies_as_deep_as_allowed_is_kept(tmp_path: Path) -> None:
    nest(tmp_path, MAX_DEPTH)
    assert paths(tmp_path) == ["d/" * MAX_DEPTH + "deep"]


def test_what_lies_too_deep_is_skipped_and_told(tmp_path: Path) -> None:
    nest(tmp_path, 500)
    (found,) = collected(tmp_path).workspace.files
    assert found == WorkspaceFile.folder("/".join("d" * MAX_DEPTH))
    assert skipped(tmp_path) == ["/".join("d" * (MAX_DEPTH + 1))]


def test_path_that_is_too_long_is_skipped_and_told(tmp_path: Path) -> None:
    nest(tmp_path, 5, name="n" * 255)
    assert len(paths(tmp_path)[0]) <= MAX_PATH_BYTES
    (found,) = skipped(tmp_path)
    assert found.startswith("nnn")


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_come_back_as_they_are(tmp_path: Path, name: bytes) -> None:
    opened = os.open(os.fsencode(tmp_path) + b"/" + name, os.O_CREAT | os.O_WRONLY)
    os.close(opened)
    assert paths(tmp_path) == [name.decode("utf-8", "surrogateescape")]


def test_unreadable_file_is_read_and_privileges_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    (tmp_path / "file").chmod(0o6111)
    (found,) = collected(tmp_path).workspace.files
    assert found == WorkspaceFile(path="file", data=b"1", executable=True)
    again = laid_out(Workspace((found,)), tmp_path / "again")
    assert (again / "file").stat().st_mode & 0o7777 == 0o755


def test_files_come_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    for name in ("b", "a/z", "a.txt", "é", "Z"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert paths(tmp_path) == ["Z", "a.txt", "a/z", "b", "é"]


def test_only_folders_that_hold_nothing_are_entries(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "file").touch()
    found = collected(tmp_path).workspace.files
    assert found == (WorkspaceFile.folder("out"), WorkspaceFile("src/file", b""))


@pytest.mark.parametrize("seed", range(40))
def test_workspace_laid_out_and_collected_is_the_same(tmp_path: Path, seed: int) -> None:
    given = random_workspace(seed)
    found = collected(laid_out(given, tmp_path / "workspace"))
    assert found.workspace == given
    assert found.workspace.digest == given.digest
    assert [file.data for file in found.workspace.files] == [file.data for file in given.files]
    assert found.skipped == ()


def test_nothing_that_is_laid_out_tells_the_time_or_the_umask(tmp_path: Path) -> None:
    given = Workspace.holding(
        (WorkspaceFile("a/b/c", b"1"), WorkspaceFile.folder("a/d"), WorkspaceFile.link("l", "a"))
    )
    mask = os.umask(0o077)
    try:
        folder = laid_out(given, tmp_path / "workspace")
    finally:
        os.umask(mask)
    found = [folder, *folder.rglob("*")]
    assert len(found) == 6
    assert {path.lstat().st_mtime for path in found} == {0}
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_dir()} == {0o755}


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "a/b"), ("a/b", "a")])
def test_path_used_twice_is_refused(tmp_path: Path, paths: tuple[str, str]) -> None:
    files = tuple(WorkspaceFile(path=path, data=b"") for path in paths)
    with pytest.raises(TaskError, match="cannot be laid out"):
        laid_out(Workspace(files=files), tmp_path / "workspace")


@pytest.mark.parametrize(
    "path", ["", "/a", "a//b", "../a", "a/..", "./a", "a\0b", "d/" * 65 + "a", "n/" * 600 + "n"]
)
def test_unsafe_path_is_refused_by_name(tmp_path: Path, path: str) -> None:
    with pytest.raises(TaskError, match="workspace path"):
        laid_out(Workspace.of({path: b""}), tmp_path / "workspace")


@pytest.mark.parametrize("target", ["/etc", "../x", "a/../../x", ""])
def test_link_that_leads_out_is_not_laid_out(tmp_path: Path, target: str) -> None:
    with pytest.raises(TaskError, match="leads out"):
        laid_out(Workspace((WorkspaceFile.link("l", target),)), tmp_path / "workspace")


def test_no_file_is_written_through_a_link_of_the_workspace(tmp_path: Path) -> None:
    files = (WorkspaceFile.link("a", "b"), WorkspaceFile("a/x", b"1"), WorkspaceFile("b/y", b""))
    with pytest.raises(TaskError, match="'a/x' cannot be laid out"):
        laid_out(Workspace(files), tmp_path / "workspace")


def test_failure_of_the_host_is_not_the_tasks(tmp_path: Path) -> None:
    with open_folder(tmp_path) as closed:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        lay_out(Workspace.of({"a": b""}), closed, owner=os.getuid())


def test_file_without_content_needs_blobs(tmp_path: Path) -> None:
    file = WorkspaceFile("a", size=1, sha256="0" * 64)
    with pytest.raises(TaskError, match="'a' carries no content"):
        laid_out(Workspace((file,)), tmp_path / "workspace")
