"""Reads and edits of a workspace's files, on paths and texts that a policy may think of."""

from collections.abc import Callable

import pytest

from loopwright.contracts.failures import StoreError
from loopwright.contracts.workspaces import MIB, Limits, Workspace, WorkspaceFile
from loopwright.environments.workspace_files import (
    CallRefused,
    inline_content,
    read_text,
    replace_text,
    resolve,
    write_text,
)

FILES = Workspace.of({"a.py": b"one\ntwo\nthree\n", "src/b.py": b"x = 1\n", "empty": b""})
LIMITS = Limits(disk_bytes=MIB)


def data_of(workspace: Workspace, path: str) -> bytes | None:
    return next(file.data for file in workspace.files if file.path == path)


def edit(workspace: Workspace, path: str, old: str, new: str) -> Workspace:
    return replace_text(workspace, path, old, new, content=inline_content, limits=LIMITS)


@pytest.mark.parametrize(
    ("path", "cwd", "place"),
    [
        ("a.py", "/workspace", "a.py"),
        ("b.py", "/workspace/src", "src/b.py"),
        ("../a.py", "/workspace/src", "a.py"),
        ("/workspace//src/./b.py", "/tmp", "src/b.py"),
        ("new/", "/workspace", "new"),
    ],
)
def test_path_is_meant_from_the_working_directory(path: str, cwd: str, place: str) -> None:
    assert resolve(FILES, path, cwd) == place


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "//workspace/a",
        "../../etc/x",
        "a\0b",
        "\ud800",
        "/workspace/",
    ],
)
def test_path_outside_the_workspace_is_refused(path: str) -> None:
    with pytest.raises(CallRefused):
        resolve(FILES, path, "/workspace")


def test_links_are_followed_within_the_workspace_only() -> None:
    entries = [WorkspaceFile("src/a.py", b"1"), WorkspaceFile.link("lib", "src")]
    entries += [WorkspaceFile.link("src/up", "../lib/a.py"), WorkspaceFile.link("out", "../etc")]
    entries += [WorkspaceFile.link("round", "round"), WorkspaceFile.link("far", "/etc/passwd")]
    workspace = Workspace.holding(entries)
    assert resolve(workspace, "lib/up", "/workspace") == "src/a.py"
    for path in ("out/passwd", "round", "far"):
        with pytest.raises(CallRefused):
            resolve(workspace, path, "/workspace")


def test_lines_are_read_with_their_numbers() -> None:
    text = read_text(FILES, "a.py", content=inline_content, first=2, last=9)
    assert text == "     2\ttwo\n     3\tthree"
    assert read_text(FILES, "empty", content=inline_content) == ""


@pytest.mark.parametrize(
    ("path", "first", "last", "said"),
    [
        ("none", 1, None, "no file none"),
        ("src", 1, None, "src is a folder; it holds b.py"),
        ("a.py", 4, None, "has 3 lines"),
        ("a.py", 3, 1, "no range"),
    ],
)
def test_what_cannot_be_read_is_told(path: str, first: int, last: int | None, said: str) -> None:
    with pytest.raises(CallRefused, match=said):
        read_text(FILES, path, content=inline_content, first=first, last=last)


def test_empty_folder_is_no_file() -> None:
    with pytest.raises(CallRefused, match="folder; it holds nothing"):
        read_text(Workspace.holding([WorkspaceFile.folder("d")]), "d", content=inline_content)


def test_content_that_is_elsewhere_is_asked_for() -> None:
    away = Workspace.holding([WorkspaceFile("a", size=3, sha256="0" * 64)])
    assert read_text(away, "a", content=lambda file: b"got") == "     1\tgot"
    with pytest.raises(StoreError, match="'a' is not at hand"):
        read_text(away, "a", content=inline_content)


def test_written_file_gives_the_workspace_that_holds_it() -> None:
    written = write_text(FILES, "src/deep/c.py", "new\ud800\n", limits=LIMITS)
    assert data_of(written, "src/deep/c.py") == "new\ufffd\n".encode()
    assert {file.path for file in written.files} == {
        *(file.path for file in FILES.files),
        "src/deep/c.py",
    }
    assert write_text(FILES, "empty", "", limits=LIMITS).digest == FILES.digest


def test_file_written_over_keeps_its_execute_bits() -> None:
    given = Workspace.holding([WorkspaceFile("run", b"1", executable=True)])
    assert write_text(given, "run", "2", limits=LIMITS).files[0].executable


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("src", "src is a folder"),
        ("a.py/b", "a.py is a file, not a folder"),
        ("x" * 256, "too long"),
        ("/".join("x" * 65), "too long"),
        ("€" * 100, "too long"),
    ],
)
def test_place_where_no_file_can_be_is_refused(path: str, said: str) -> None:
    with pytest.raises(CallRefused, match=said):
        write_text(FILES, path, "", limits=LIMITS)


def test_workspace_never_grows_beyond_what_a_sandbox_can_lay_out() -> None:
    with pytest.raises(CallRefused, match="1 MiB"):
        write_text(FILES, "big", "x" * (MIB - 2 * 4096 + 1), limits=LIMITS)
    assert write_text(FILES, "big", "x" * (MIB - 2 * 4096), limits=LIMITS)
    many = Workspace.of({f"d{number}/f": b"" for number in range(4500)})
    with pytest.raises(CallRefused, match="9000 files and folders"):
        write_text(many, "one more", "", limits=LIMITS)


def test_one_occurrence_is_replaced() -> None:
    assert data_of(edit(FILES, "a.py", "two\nth", "2\nTH"), "a.py") == b"one\n2\nTHree\n"


@pytest.mark.parametrize(
    ("old", "said"), [("four", "does not occur"), ("e", "occurs 3 times"), ("", "does not occur")]
)
def test_text_that_does_not_occur_once_is_told(old: str, said: str) -> None:
    with pytest.raises(CallRefused, match=said):
        edit(FILES, "a.py", old, "x")


def test_edit_keeps_carriage_returns_and_bytes_that_are_not_text() -> None:
    given = Workspace.of({"a": b"\xff\r\none\r\ntwo\r\n"})
    assert data_of(edit(given, "a", "one\ntwo", "1\n2"), "a") == b"\xff\r\n1\r\n2\r\n"


EDITS: list[Callable[[Workspace], Workspace]] = [
    lambda given: edit(given, "a.py", "two", "2"),
    lambda given: write_text(given, "b", "", limits=LIMITS),
]


@pytest.mark.parametrize("change", EDITS)
def test_workspace_that_was_given_stays(change: Callable[[Workspace], Workspace]) -> None:
    before = FILES.digest
    assert change(FILES).digest != before
    assert Workspace(FILES.files).digest == before
