"""A tree of files in the making, below one open folder, that nothing written into it can leave.

Every file is reached from the folder's descriptor, one name at a time, and no link is followed by
the kernel: a link that is in the way of a path is resolved here, and stays below the folder however
it is written. Owners, set-id bits, write bits of others, times and extended attributes are not
kept, so that a tree says what a program can read in it and nothing else.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from loopwright.contracts.failures import UserError
from loopwright.contracts.workspaces import Skipped, written

MAX_DEPTH = 128
"""Folders above any entry."""
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK_BYTES = 1 << 20
_MAX_LINKS = 40
"""Links that may be in the way of one path, as with the kernel."""
_MAX_NAME_BYTES = 255
_MAX_TOLD = 1000
"""Skipped entries that are named; all are counted."""

Parts = tuple[bytes, ...]
"""A path below the tree, name by name."""


class Readable(Protocol):
    """What contents are read from."""

    def read(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes; none at the end."""
        ...


@dataclass(slots=True)
class Caps:
    """What may still be written, counted down."""

    bytes_left: int
    entries_left: int

    def take_bytes(self, num_bytes: int) -> None:
        """Count bytes.

        Raises:
            UserError: they are too many.
        """
        self.bytes_left -= num_bytes
        if self.bytes_left < 0:
            raise UserError("it holds more bytes than a root may have")

    def take_entry(self) -> None:
        """Count an entry.

        Raises:
            UserError: it is one too many.
        """
        self.entries_left -= 1
        if self.entries_left < 0:
            raise UserError("it holds more files and folders than a root may have")


@dataclass(slots=True)
class Report:
    """What was left out of a tree."""

    num_skipped: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    """The first thousand."""

    def skip(self, path: bytes, reason: str) -> None:
        """Note an entry that is left out."""
        self.num_skipped += 1
        if len(self.skipped) < _MAX_TOLD:
            self.skipped.append(Skipped(written(path), reason))


def split(path: bytes) -> Parts:
    """Take a path apart; one that begins with ``/`` begins at the tree.

    Raises:
        UserError: it has ``..``, NUL, a name that is too long, or too many folders.
    """
    parts = tuple(part for part in path.split(b"/") if part not in (b"", b"."))
    if b".." in parts or b"\0" in path:
        raise UserError(f"{written(path[:200])!r} is no path of a root: it has '..' or NUL")
    if len(parts) > MAX_DEPTH or any(len(part) > _MAX_NAME_BYTES for part in parts):
        raise UserError(
            f"{written(path[:200])!r} is no path of a root: more than {MAX_DEPTH} folders, "
            f"or a name of more than {_MAX_NAME_BYTES} bytes"
        )
    return parts


def kept_mode(mode: int) -> int:
    """Give the permission bits that a file keeps."""
    return mode & 0o755 | stat.S_IRUSR


class FileTree:
    """Files, folders and links below ``folder``, which must be empty and nobody else's."""

    def __init__(self, folder: Path, caps: Caps) -> None:
        self.root = os.open(folder, FOLDER_FLAGS)
        self._caps = caps
        self._sha256: dict[int, str] = {}
        """Of each file, by its inode."""
        os.fchmod(self.root, 0o755)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.root)

    def is_root(self, status: os.stat_result) -> bool:
        """Tell whether this is the folder that the tree is made in."""
        return os.path.samestat(status, os.fstat(self.root))

    def write_folder(self, path: Parts, mode: int) -> None:
        """Make a folder, or give one that is there another mode; the tree itself keeps its own.

        Raises:
            UserError: the path is below a file, or the caps are exceeded.
        """
        if not path:
            return
        with self._parent(path) as folder:
            if _kind(folder, path[-1]) != stat.S_IFDIR:
                self._clear(folder, path[-1])
                os.mkdir(path[-1], dir_fd=folder)
            with _opened(folder, path[-1]) as made:
                os.fchmod(made, kept_mode(mode) | stat.S_IRWXU)

    def write_file(self, path: Parts, content: Readable, *, size: int, mode: int) -> None:
        """Write a new file in the place of whatever is there.

        Raises:
            UserError: ``content`` ends early, or as for folders.
        """
        self._caps.take_bytes(size)
        with self._place(path) as folder:
            made = os.open(path[-1], _NEW_FILE_FLAGS, 0o600, dir_fd=folder)
            try:
                digest = _copy(content, made, size, path)
                os.fchmod(made, kept_mode(mode))
                self._sha256[os.fstat(made).st_ino] = digest
            finally:
                os.close(made)

    def write_link(self, path: Parts, target: bytes) -> None:
        """Make a symbolic link, in the place of whatever is there.

        Raises:
            UserError: as for folders, or the target is empty or too long.
        """
        if not 0 < len(target) < os.pathconf("/", "PC_PATH_MAX") or b"\0" in target:
            raise UserError(f"the link {_shown(path)} has no target that a link can have")
        with self._place(path) as folder:
            os.symlink(target, path[-1], dir_fd=folder)

    def write_hard_link(self, path: Parts, existing: Parts) -> None:
        """Give a file of the tree another name, in the place of whatever is there.

        Raises:
            UserError: there is no such file, or as for folders.
        """
        with self._parent(existing, is_made=False) as source, self._parent(path) as folder:
            if source >= 0 and os.path.sameopenfile(source, folder) and existing[-1] == path[-1]:
                return
            if _is_linkable(source, existing[-1]):
                self._clear(folder, path[-1])
            if not _is_linkable(source, existing[-1]):
                raise UserError(
                    f"{_shown(path)} is a hard link to {_shown(existing)}, "
                    "which is no file of this root"
                )
            os.link(
                *(existing[-1], path[-1]),
                src_dir_fd=source,
                dst_dir_fd=folder,
                follow_symlinks=False,
            )

    def remove(self, path: Parts) -> bool:
        """Remove what is at a path, if anything; say whether there was."""
        with self._parent(path, is_made=False) as folder:
            is_there = folder >= 0 and _kind(folder, path[-1]) is not None
            if is_there:
                _remove(folder, path[-1])
            return is_there

    def empty(self, path: Parts) -> None:
        """Remove all that is in a folder, if it is one."""
        with self._parent((*path, b"."), is_made=False) as folder:
            for name in names(folder) if folder >= 0 else ():
                _remove(folder, name)

    def sha256(self, inode: int) -> str:
        """Give the digest of a file that was written here."""
        return self._sha256[inode]

    @contextmanager
    def _place(self, path: Parts) -> Iterator[int]:
        """Open the folder of a path at which nothing is any more."""
        with self._parent(path) as folder:
            self._clear(folder, path[-1])
            yield folder

    def _clear(self, folder: int, name: bytes) -> None:
        self._caps.take_entry()
        if _kind(folder, name) is not None:
            _remove(folder, name)

    @contextmanager
    def _parent(self, path: Parts, *, is_made: bool = True) -> Iterator[int]:
        """Open the folder of a path, making it where asked; -1 where there is none."""
        if not path:
            raise UserError("it has an entry in the place of the root itself")
        opened = [os.dup(self.root)]
        try:
            is_there = self._descend(opened, path, is_made=is_made)
            yield opened[-1] if is_there else -1
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _descend(self, opened: list[int], path: Parts, *, is_made: bool) -> bool:
        pending = list(reversed(path[:-1]))
        num_links = 0
        while pending:
            name = pending.pop()
            if name == b"..":
                _leave(opened, until=max(1, len(opened) - 1))
                continue
            kind = _kind(opened[-1], name)
            if kind == stat.S_IFLNK:
                num_links += 1
                pending += self._resolve(opened, name, num_links)
            elif kind == stat.S_IFDIR or (kind is None and is_made):
                self._enter(opened, name, is_new=kind is None)
            elif is_made:
                raise UserError(f"{_shown(path)} lies below {written(name)!r}, which is no folder")
            else:
                return False
        return True

    def _enter(self, opened: list[int], name: bytes, *, is_new: bool) -> None:
        if len(opened) > MAX_DEPTH:
            raise UserError(f"it has more than {MAX_DEPTH} folders in one another")
        if is_new:
            self._caps.take_entry()
            os.mkdir(name, 0o755, dir_fd=opened[-1])
        descriptor = os.open(name, FOLDER_FLAGS, dir_fd=opened[-1])
        opened.append(descriptor)
        if is_new:
            os.fchmod(descriptor, 0o755)

    def _resolve(self, opened: list[int], name: bytes, num_links: int) -> list[bytes]:
        """Give the names to go on with behind a link, the last first."""
        if num_links > _MAX_LINKS:
            raise UserError(f"the link {written(name)!r} leads in circles")
        target = os.readlink(name, dir_fd=opened[-1])
        if target.startswith(b"/"):
            _leave(opened, until=1)
        parts = [part for part in target.split(b"/") if part not in (b"", b".")]
        if any(len(part) > _MAX_NAME_BYTES for part in parts):
            raise UserError(f"the link {written(name)!r} leads to a name that is too long")
        return parts[::-1]


def _kind(folder: int, name: bytes) -> int | None:
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def _is_linkable(folder: int, name: bytes) -> bool:
    return folder >= 0 and _kind(folder, name) in (stat.S_IFREG, stat.S_IFLNK)


def _leave(opened: list[int], *, until: int) -> None:
    while len(opened) > until:
        os.close(opened.pop())


def _remove(folder: int, name: bytes) -> None:
    if _kind(folder, name) == stat.S_IFDIR:
        shutil.rmtree(os.fsdecode(name), dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def names(folder: int) -> list[bytes]:
    """List an open folder, in the order of bytes."""
    return sorted(os.fsencode(name) for name in os.listdir(folder))


@contextmanager
def _opened(folder: int, name: bytes) -> Iterator[int]:
    descriptor = os.open(name, FOLDER_FLAGS, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _copy(content: Readable, target: int, size: int, path: Parts) -> str:
    digest = hashlib.sha256()
    while size > 0:
        chunk = content.read(min(size, _CHUNK_BYTES))
        if not chunk:
            raise UserError(f"the content of {_shown(path)} ends {size} bytes early")
        digest.update(chunk)
        size -= len(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(target, rest) :]
    return digest.hexdigest()


def _shown(path: Parts) -> str:
    return repr(written(b"/".join(path)[:200]))
