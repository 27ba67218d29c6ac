"""Lays a workspace out as files and reads it back, trusting nothing of what a program left.

Files are reached by folder descriptors only, never by path, and no link is followed. Links, pipes,
devices, sockets, empty folders, and what lies too deep are left out: a workspace is plain files.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from loopwright.contracts.failures import TaskError
from loopwright.contracts.workspaces import Workspace, WorkspaceFile

MAX_FILES = 10_000
"""Files and folders in one workspace."""
_MAX_DEPTH = 64
_MAX_PATH_BYTES = 1024
_CHUNK_BYTES = 1 << 20
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class WorkspaceTooLarge(Exception):
    """What a program left is more than a workspace may hold."""


def lay_out(workspace: Workspace, folder: Path, *, owner: int) -> None:
    """Write the files into an empty folder, owned by ``owner``, with no times.

    Raises:
        TaskError: a path is unsafe or used twice, or the files do not fit.
    """
    made: set[Path] = {folder}
    for file in workspace.files:
        target = _safe_target(folder, file.path)
        try:
            _make_parents(target.parent, made, owner)
            _write(target, file, owner)
        except OSError as error:
            raise TaskError(f"workspace file {file.path!r} cannot be laid out: {error}") from error
    for made_folder in made:
        os.utime(made_folder, (0, 0))


def collect(folder: Path, *, max_bytes: int) -> Workspace:
    """Read the files of a folder in which nothing runs any more.

    Raises:
        WorkspaceTooLarge: more files or bytes than allowed, holes of sparse files counted.
    """
    walk = _Walk(max_bytes)
    root = os.open(folder, _FOLDER_FLAGS)
    try:
        walk.device = os.fstat(root).st_dev
        files = sorted(walk.files(root, b"", 0), key=_order)
    finally:
        os.close(root)
    return Workspace(files=tuple(files))


@dataclass(slots=True)
class _Walk:
    """What is left to read, counted down."""

    bytes_left: int
    entries_left: int = MAX_FILES
    device: int = field(default=0, init=False)

    def files(self, folder: int, prefix: bytes, depth: int) -> Iterator[WorkspaceFile]:
        """Yield the plain files below an open folder."""
        for name in self._names(folder):
            path = prefix + name
            if len(path) > _MAX_PATH_BYTES:
                continue
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                yield from self._file(folder, name, path)
            elif stat.S_ISDIR(mode) and depth < _MAX_DEPTH:
                yield from self._folder(folder, name, path, depth)

    def _names(self, folder: int) -> list[bytes]:
        names = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self.entries_left -= 1
                if self.entries_left < 0:
                    raise WorkspaceTooLarge(f"more than {MAX_FILES} files")
                names.append(os.fsencode(entry.name))
        return names

    def _folder(self, parent: int, name: bytes, path: bytes, depth: int) -> Iterator[WorkspaceFile]:
        opened = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
        try:
            if os.fstat(opened).st_dev == self.device:
                yield from self.files(opened, path + b"/", depth + 1)
        finally:
            os.close(opened)

    def _file(self, folder: int, name: bytes, path: bytes) -> Iterator[WorkspaceFile]:
        opened = os.open(name, _FILE_FLAGS, dir_fd=folder)
        try:
            found = os.fstat(opened)
            if not stat.S_ISREG(found.st_mode) or found.st_dev != self.device:
                return
            self.bytes_left -= found.st_size
            if self.bytes_left < 0:
                raise WorkspaceTooLarge("more bytes than the workspace may hold")
            yield WorkspaceFile(
                path=path.decode("utf-8", "surrogateescape"),
                data=_read(opened, found.st_size),
                executable=bool(found.st_mode & 0o111),
            )
        finally:
            os.close(opened)


def _order(file: WorkspaceFile) -> bytes:
    return file.path.encode("utf-8", "surrogateescape")


def _read(opened: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.read(opened, min(size, _CHUNK_BYTES))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _safe_target(folder: Path, path: str) -> Path:
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise TaskError(f"workspace path {path!r} must be relative, without '.', '..' and NUL")
    return folder.joinpath(*parts)


def _make_parents(folder: Path, made: set[Path], owner: int) -> None:
    if folder in made:
        return
    _make_parents(folder.parent, made, owner)
    folder.mkdir()
    folder.chmod(0o755)
    os.chown(folder, owner, owner)
    made.add(folder)


def _write(target: Path, file: WorkspaceFile, owner: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(target, flags, 0o600)
    try:
        rest = memoryview(file.data)
        while rest:
            rest = rest[os.write(opened, rest) :]
        os.fchown(opened, owner, owner)
        os.fchmod(opened, 0o755 if file.executable else 0o644)
        os.utime(opened, (0, 0))
    finally:
        os.close(opened)
