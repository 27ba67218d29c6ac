"""Lays a workspace out as files and reads it back, trusting nothing of what a program left.

Everything is reached from an open folder, one name at a time, and no link is followed. What a
workspace cannot hold is skipped and told: links that lead out, pipes, devices, sockets, other file
systems, and what lies too deep or has too long a path.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from loopwright.contracts.failures import TaskError
from loopwright.contracts.workspaces import (
    EntryKind,
    Skipped,
    Workspace,
    WorkspaceFile,
    raw,
    written,
)
from loopwright.core.protocols import Blobs

MAX_FILES = 10_000
"""Files, links and folders in one workspace."""
MAX_DEPTH = 64
"""Folders on the way to a file."""
MAX_PATH_BYTES = 1024
_SHOWN_PATH_BYTES = 200
_CHUNK_BYTES = 1 << 20
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_SUCH = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO)
_UNFIT = (
    *(errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
    *(errno.EINVAL, errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
)
"""Errors that say something of the workspace; all others say something of the host."""


class WorkspaceTooLarge(Exception):
    """What a program left is more than a workspace may hold."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a folder held."""

    workspace: Workspace
    skipped: tuple[Skipped, ...]
    """What the workspace does not hold, in order of path."""


def lay_out(workspace: Workspace, folder: int, *, owner: int, blobs: Blobs | None = None) -> None:
    """Write the files below an open, empty folder, owned by ``owner``, with no times.

    Raises:
        TaskError: a path is unsafe or used twice, or the files do not fit.
        StoreError: a content cannot be had.
        OSError: the host failed.
    """
    with nullcontext() if blobs is None else blobs.at_hand(workspace), _Writer(folder, owner) as to:
        for entry in workspace.files:
            names = _safe_names(entry)
            try:
                to.write(entry, names, _content(entry, blobs))
            except OSError as error:
                if error.errno not in _UNFIT:
                    raise
                raise TaskError(
                    f"workspace file {entry.path!r} cannot be laid out: {error.strerror}"
                ) from error


def collect(
    folder: int, *, max_bytes: int, max_files: int = MAX_FILES, blobs: Blobs | None = None
) -> Collected:
    """Read what is below an open folder in which nothing runs any more.

    Contents that ``blobs`` keeps are not carried by the workspace.

    Raises:
        WorkspaceTooLarge: more entries or bytes than allowed, holes of sparse files counted.
        OSError: the host failed.
    """
    walk = _Walk(max_bytes, max_files, os.fstat(folder).st_dev, blobs)
    entries = sorted(walk.entries(folder, b"", 0), key=lambda entry: entry.raw_path)
    skipped = sorted(walk.skipped, key=lambda skip: raw(skip.path))
    return Collected(Workspace(tuple(entries)), tuple(skipped))


@contextmanager
def open_folder(folder: str | os.PathLike[str]) -> Iterator[int]:
    """Open a folder for ``lay_out`` and ``collect``; a link in its last place is refused."""
    descriptor = os.open(folder, _FOLDER_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Walk:
    """What may still be read, counted down, and what was left out."""

    bytes_left: int
    max_files: int
    device: int
    blobs: Blobs | None
    num_entries: int = field(default=0, init=False)
    skipped: list[Skipped] = field(default_factory=list, init=False)

    def entries(self, folder: int, prefix: bytes, depth: int) -> Iterator[WorkspaceFile]:
        """Yield what a workspace holds of an open folder."""
        for entry in self._listed(folder):
            name = os.fsencode(entry.name)
            path = prefix + name
            if len(path) > MAX_PATH_BYTES:
                self._skip(path, "its path is too long")
            elif entry.is_symlink():
                yield from self._link(folder, name, path)
            elif entry.is_dir(follow_symlinks=False):
                yield from self._folder(folder, name, path, depth)
            elif entry.is_file(follow_symlinks=False):
                yield from self._file(folder, name, path)
            else:
                self._skip(path, "it is a pipe, socket or device")

    def _listed(self, folder: int) -> "list[os.DirEntry[str]]":
        listed = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self.num_entries += 1
                if self.num_entries > self.max_files:
                    raise WorkspaceTooLarge(f"more than {self.max_files} files and folders")
                listed.append(entry)
        return listed

    def _link(self, folder: int, name: bytes, path: bytes) -> Iterator[WorkspaceFile]:
        target = os.readlink(name, dir_fd=folder)
        if _stays_inside(path, target):
            yield WorkspaceFile.link(written(path), written(target))
        else:
            self._skip(path, f"it is a link to {written(target[:_SHOWN_PATH_BYTES])!r}")

    def _folder(self, parent: int, name: bytes, path: bytes, depth: int) -> Iterator[WorkspaceFile]:
        with self._open(parent, name, path, _FOLDER_FLAGS) as folder:
            if folder is None:
                return
            if depth == MAX_DEPTH:
                self._skip(path, f"it lies more than {MAX_DEPTH} folders deep")
                return
            is_empty = True
            for entry in self.entries(folder, path + b"/", depth + 1):
                is_empty = False
                yield entry
            if is_empty:
                yield WorkspaceFile.folder(written(path))

    def _file(self, folder: int, name: bytes, path: bytes) -> Iterator[WorkspaceFile]:
        with self._open(folder, name, path, _READ_FLAGS) as opened:
            if opened is None:
                return
            found = os.fstat(opened)
            self.bytes_left -= found.st_size
            if self.bytes_left < 0:
                raise WorkspaceTooLarge("more bytes than the workspace may hold")
            data = _read(opened, found.st_size)
        digest = hashlib.sha256(data).hexdigest()
        is_kept = self.blobs is not None and self.blobs.is_kept(digest)
        yield WorkspaceFile(
            path=written(path),
            data=None if is_kept else data,
            executable=bool(found.st_mode & 0o111),
            size=len(data),
            sha256=digest,
        )

    @contextmanager
    def _open(self, folder: int, name: bytes, path: bytes, flags: int) -> Iterator[int | None]:
        """Open a file or folder; what cannot be opened or is another's is skipped."""
        try:
            descriptor = os.open(name, flags, dir_fd=folder)
        except OSError as error:
            if error.errno not in _NO_SUCH:
                raise
            self._skip(path, f"it cannot be read: {error.strerror}")
            yield None
            return
        try:
            problem = self._problem(os.fstat(descriptor))
            if problem:
                self._skip(path, problem)
            yield None if problem else descriptor
        finally:
            os.close(descriptor)

    def _problem(self, found: os.stat_result) -> str:
        """Say what is wrong with what was opened; files of an overlay are of many devices."""
        if stat.S_ISDIR(found.st_mode):
            return "" if found.st_dev == self.device else "it is another file system"
        return "" if stat.S_ISREG(found.st_mode) else "it is no plain file"

    def _skip(self, path: bytes, reason: str) -> None:
        self.skipped.append(Skipped(written(path[:_SHOWN_PATH_BYTES]), reason))


class _Writer:
    """The open folders on the way to the file being written, and how files are made there."""

    def __init__(self, root: int, owner: int) -> None:
        self._root, self._owner = root, owner
        self._names: list[bytes] = []
        self._folders: list[int] = []

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._leave(0)
        os.utime(self._root, (0, 0))

    def write(self, entry: WorkspaceFile, names: list[bytes], data: bytes) -> None:
        """Make one entry in a folder that has no such name yet."""
        *parents, name = names
        folder = self._enter(parents)
        if entry.kind is EntryKind.FOLDER:
            self._enter(names)
        elif entry.kind is EntryKind.LINK:
            os.symlink(raw(entry.target), name, dir_fd=folder)
            os.chown(name, self._owner, self._owner, dir_fd=folder, follow_symlinks=False)
            os.utime(name, (0, 0), dir_fd=folder, follow_symlinks=False)
        else:
            self._write_file(folder, name, data, 0o755 if entry.executable else 0o644)

    def _write_file(self, folder: int, name: bytes, data: bytes, mode: int) -> None:
        opened = os.open(name, _WRITE_FLAGS, 0o600, dir_fd=folder)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(opened, rest) :]
            self._finish(opened, mode)
        finally:
            os.close(opened)

    def _enter(self, names: list[bytes]) -> int:
        """Open the folder of these names, making what is missing of it."""
        common = 0
        for ours, theirs in zip(self._names, names, strict=False):
            if ours != theirs:
                break
            common += 1
        self._leave(common)
        for name in names[common:]:
            folder = self._folders[-1] if self._folders else self._root
            self._folders.append(_made_folder(folder, name))
            self._names.append(name)
        return self._folders[-1] if self._folders else self._root

    def _leave(self, depth: int) -> None:
        while len(self._folders) > depth:
            self._names.pop()
            folder = self._folders.pop()
            try:
                self._finish(folder, 0o755)
            finally:
                os.close(folder)

    def _finish(self, descriptor: int, mode: int) -> None:
        os.fchown(descriptor, self._owner, self._owner)
        os.fchmod(descriptor, mode)
        os.utime(descriptor, (0, 0))


def _made_folder(parent: int, name: bytes) -> int:
    """Make a folder and open it; one that is there was made for the entry before."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    return os.open(name, _FOLDER_FLAGS, dir_fd=parent)


def _content(entry: WorkspaceFile, blobs: Blobs | None) -> bytes:
    if entry.data is not None or entry.kind is not EntryKind.FILE:
        return entry.data or b""
    if blobs is None:
        raise TaskError(f"workspace file {entry.path!r} carries no content, and there are no blobs")
    return blobs.read(entry)


def _safe_names(entry: WorkspaceFile) -> list[bytes]:
    """Split a path that may be laid out."""
    names = entry.raw_path.split(b"/")
    if b"\0" in entry.raw_path or any(name in (b"", b".", b"..") for name in names):
        raise TaskError(
            f"workspace path {entry.path!r} must be relative, without '.', '..' and NUL"
        )
    num_folders = len(names) - (entry.kind is not EntryKind.FOLDER)
    if len(entry.raw_path) > MAX_PATH_BYTES or num_folders > MAX_DEPTH:
        raise TaskError(
            f"workspace path {entry.path[:_SHOWN_PATH_BYTES]!r}... must have at most "
            f"{MAX_PATH_BYTES} bytes and {MAX_DEPTH} folders"
        )
    if entry.kind is EntryKind.LINK and not _stays_inside(entry.raw_path, raw(entry.target)):
        raise TaskError(f"workspace link {entry.path!r} leads out, to {entry.target!r}")
    return names


def _stays_inside(path: bytes, target: bytes) -> bool:
    """Tell whether a link cannot lead out: it climbs at its beginning only, and not too far.

    A ``..`` behind a name could climb from where another link leads to, which is not the folder
    that the text shows.
    """
    names = target.split(b"/")
    num_climbs = next((i for i, name in enumerate(names) if name != b".."), len(names))
    return (
        0 < len(target) <= MAX_PATH_BYTES
        and not target.startswith(b"/")
        and b"\0" not in target
        and b".." not in names[num_climbs:]
        and num_climbs <= path.count(b"/")
    )


def _read(opened: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.read(opened, min(size, _CHUNK_BYTES))):
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
