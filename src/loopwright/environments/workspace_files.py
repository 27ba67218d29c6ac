"""Reads and edits of single files of a workspace, on the host, without a jail.

Paths and texts are the policy's: whatever is wrong with them is a ``CallRefused`` with a message
for it to read. How content is had and how a workspace is put together stands in two functions.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator

from loopwright.contracts.failures import StoreError
from loopwright.contracts.workspaces import MIB, EntryKind, Limits, Workspace, WorkspaceFile
from loopwright.environments.clean_text import clean, scrub
from loopwright.environments.shell_session import WORKSPACE

MAX_ENTRIES = 9_000
"""Files and folders up to which new ones may be written; the sandbox takes some more."""
_MAX_PATH_BYTES = 1024
_MAX_NAME_BYTES = 255
_MAX_DEPTH = 64
_MAX_LINKS = 40
_MAX_SHOWN = 200
_MAX_NAMES = 50
_PAGE_BYTES = 4096

ReadContent = Callable[[WorkspaceFile], bytes]
"""Gives the content of a file.

Raises:
    StoreError: it cannot be had; the platform's trouble.
"""


class CallRefused(Exception):
    """A tool call that cannot be carried out as asked; the message is for the policy."""


def inline_content(file: WorkspaceFile) -> bytes:
    """Give the content of a file that carries it.

    Raises:
        StoreError: it is among the blobs.
    """
    if file.data is None:
        raise StoreError(f"the content of workspace file {file.path!r} is not at hand")
    return file.data


def resolve(workspace: Workspace, path: str, cwd: str) -> str:
    """Give the workspace's own path of what the policy calls ``path`` while in ``cwd``.

    Links are followed as far as they lead.

    Raises:
        CallRefused: it is no path in the workspace.
    """
    if not path or "\0" in path or path != scrub(path):
        raise CallRefused(f"'{_shown(path)}' is not a path")
    links = {file.path: file.target for file in workspace.files if file.kind is EntryKind.LINK}
    place = _inside(posixpath.join(cwd, path), path)
    for _ in range(_MAX_LINKS):
        link = next((start for start in _starts(place) if start in links), None)
        if link is None:
            return place
        rest = place[len(link) + 1 :]
        place = _inside(posixpath.join(WORKSPACE, posixpath.dirname(link), links[link], rest), path)
    raise CallRefused(f"{_shown(path)} leads through too many links")


def _inside(whole: str, path: str) -> str:
    place = posixpath.normpath(whole)
    if not place.startswith(f"{WORKSPACE}/"):
        raise CallRefused(
            f"{_shown(path)} is not a file in {WORKSPACE}; use bash for what is elsewhere"
        )
    return place.removeprefix(f"{WORKSPACE}/")


def _starts(path: str) -> Iterator[str]:
    """Yield the folders on the way to a path, and it."""
    yield from (path[:index] for index, character in enumerate(path) if character == "/")
    yield path


def read_text(
    workspace: Workspace,
    path: str,
    *,
    content: ReadContent,
    first: int = 1,
    last: int | None = None,
) -> str:
    """Give the lines ``first`` to ``last`` of a file, from 1, each behind its number.

    Raises:
        CallRefused: there is no such file, or no such lines.
    """
    text = clean(content(_existing(workspace, path)))
    lines = text.removesuffix("\n").split("\n") if text else []
    end = len(lines) if last is None else last
    if first < 1 or end < first - 1:
        raise CallRefused(f"lines {first} to {end} are no range; lines count from 1")
    if first > max(1, len(lines)):
        raise CallRefused(f"{path} has {len(lines)} lines, none from {first} on")
    numbered = enumerate(lines[first - 1 : end], start=first)
    return "\n".join(f"{number:>6}\t{line}" for number, line in numbered)


def write_text(workspace: Workspace, path: str, text: str, *, limits: Limits) -> Workspace:
    """Give the workspace with this file created or replaced; execute bits stay.

    Raises:
        CallRefused: the path is taken by a folder, or the workspace cannot hold the file.
    """
    return _put(workspace, path, scrub(text).encode(), limits)


def replace_text(
    workspace: Workspace, path: str, old: str, new: str, *, content: ReadContent, limits: Limits
) -> Workspace:
    """Give the workspace with the one occurrence of ``old`` in a file replaced by ``new``.

    In a file with carriage returns at its line ends, plain line ends match them.

    Raises:
        CallRefused: ``old`` does not occur exactly once, or the workspace cannot hold the file.
    """
    data = content(_existing(workspace, path))
    before, after = scrub(old).encode(), scrub(new).encode()
    if b"\r\n" in data and before not in data:
        before, after = (part.replace(b"\n", b"\r\n") for part in (before, after))
    count = data.count(before) if before else 0
    if count != 1:
        found = f"occurs {count} times" if count else "does not occur"
        raise CallRefused(f"the old text {found} in {path}; it must occur exactly once")
    return _put(workspace, path, data.replace(before, after), limits)


def _existing(workspace: Workspace, path: str) -> WorkspaceFile:
    file = _find(workspace, path)
    if file is not None and file.kind is EntryKind.FILE:
        return file
    _refuse_folder(workspace, path)
    raise CallRefused(f"there is no file {_shown(path)} in {WORKSPACE}")


def _find(workspace: Workspace, path: str) -> WorkspaceFile | None:
    return next((file for file in workspace.files if file.path == path), None)


def _refuse_folder(workspace: Workspace, path: str) -> None:
    prefix = f"{path}/"
    rests = (file.path[len(prefix) :] for file in workspace.files if file.path.startswith(prefix))
    names = sorted({scrub(rest.partition("/")[0]) for rest in rests})
    if names:
        shown = ", ".join((*names[:_MAX_NAMES], *(["..."] if names[_MAX_NAMES:] else [])))
        raise CallRefused(f"{path} is a folder; it holds {shown}")
    file = _find(workspace, path)
    if file is not None and file.kind is EntryKind.FOLDER:
        raise CallRefused(f"{path} is a folder; it holds nothing")


def _put(workspace: Workspace, path: str, data: bytes, limits: Limits) -> Workspace:
    """Put a file in its place, having checked that a sandbox can lay the workspace out again."""
    _check_place(workspace, path)
    old = _find(workspace, path)
    file = WorkspaceFile(path, data, executable=old is not None and old.executable)
    others = [other for other in workspace.files if other.path != path]
    if sum(map(_num_page_bytes, (*others, file))) > limits.disk_bytes:
        raise CallRefused(f"the workspace may hold {limits.disk_bytes / MIB:g} MiB, no more")
    if old is None and _num_entries((*others, file)) > MAX_ENTRIES:
        raise CallRefused(f"the workspace may hold {MAX_ENTRIES} files and folders, no more")
    return Workspace.holding((*others, file))


def _check_place(workspace: Workspace, path: str) -> None:
    names = path.split("/")
    is_too_long = len(path.encode()) > _MAX_PATH_BYTES or len(names) > _MAX_DEPTH
    if is_too_long or any(len(name.encode()) > _MAX_NAME_BYTES for name in names):
        raise CallRefused(f"the path {_shown(path)} is too long")
    _refuse_folder(workspace, path)
    parents = set(_starts(path)) - {path}
    for file in workspace.files:
        if file.kind is EntryKind.FILE and file.path in parents:
            raise CallRefused(f"{file.path} is a file, not a folder")


def _num_entries(files: Iterable[WorkspaceFile]) -> int:
    return len({start for file in files for start in _starts(file.path)})


def _num_page_bytes(file: WorkspaceFile) -> int:
    return -(-file.size // _PAGE_BYTES) * _PAGE_BYTES


def _shown(path: str) -> str:
    return path if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]}..."
