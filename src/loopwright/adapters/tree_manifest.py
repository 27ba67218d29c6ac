"""What a finished tree of files is: its canonical manifest, and times that follow from it.

The manifest has a line for each entry below the tree, in the order of their paths' bytes:
the path's length and bytes, the kind, and mode (folders and files), size and sha256 (files) or
length and bytes of the target (links). Its sha256 is the tree's digest.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loopwright.adapters.file_tree import FOLDER_FLAGS, names

_BYTE_CODE = b"__pycache__"
_HEADER_BYTES = 12
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, as found."""

    path: bytes
    folder: int
    """Descriptor of the folder it is in; open until the next entry is asked for."""
    status: os.stat_result

    @property
    def name(self) -> bytes:
        """Its name in the folder."""
        return self.path.rpartition(b"/")[2]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest, with what it sums up to."""

    data: bytes
    num_entries: int
    num_bytes: int
    """Of all files; one with several names is counted for each."""


def walk(folder: int, prefix: bytes = b"") -> Iterator[Entry]:
    """Yield what is below an open folder, a folder after all that is in it."""
    for name in names(folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            opened = os.open(name, FOLDER_FLAGS, dir_fd=folder)
            try:
                yield from walk(opened, prefix + name + b"/")
            finally:
                os.close(opened)
        yield Entry(prefix + name, folder, status)


def build_manifest(folder: int, sha256: Callable[[int], str]) -> Manifest:
    """Describe all that is below an open folder; ``sha256`` gives a file's digest by its inode."""
    lines: list[tuple[bytes, bytes]] = []
    num_bytes = 0
    for entry in walk(folder):
        lines.append((entry.path, _line(entry, sha256)))
        num_bytes += entry.status.st_size if stat.S_ISREG(entry.status.st_mode) else 0
    lines.sort()
    return Manifest(b"".join(line for _, line in lines), len(lines), num_bytes)


def forget_times(folder: int) -> None:
    """Give everything the time 0, but sources of Python the one that their byte code expects."""
    for entry in walk(folder):
        os.utime(entry.name, (0, 0), dir_fd=entry.folder, follow_symlinks=False)
    for entry in walk(folder):
        if entry.name == _BYTE_CODE and stat.S_ISDIR(entry.status.st_mode):
            _set_source_times(entry.folder)
    os.utime(folder, (0, 0))


def _line(entry: Entry, sha256: Callable[[int], str]) -> bytes:
    path, status = entry.path, entry.status
    begin = b"%d:%b" % (len(path), path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return b"%b folder %o\n" % (begin, mode)
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(entry.name, dir_fd=entry.folder)
        return b"%b link %d:%b\n" % (begin, len(target), target)
    digest = sha256(status.st_ino).encode()
    return b"%b file %o %d %b\n" % (begin, mode, status.st_size, digest)


def _set_source_times(folder: int) -> None:
    """Byte code names the time of its source, and is not used when the source has another."""
    opened = os.open(_BYTE_CODE, FOLDER_FLAGS, dir_fd=folder)
    try:
        for name in names(opened):
            time = _source_time(opened, name)
            source = name.partition(b".")[0] + b".py"
            if time is not None and _is_file(folder, source):
                os.utime(source, (0, time), dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(opened)


def _source_time(folder: int, name: bytes) -> int | None:
    if not name.endswith(b".pyc") or not _is_file(folder, name):
        return None
    opened = os.open(name, _FILE_FLAGS, dir_fd=folder)
    try:
        header = os.read(opened, _HEADER_BYTES)
    finally:
        os.close(opened)
    is_by_time = len(header) == _HEADER_BYTES and header[4:8] == bytes(4)
    return int.from_bytes(header[8:], "little") if is_by_time else None


def _is_file(folder: int, name: bytes) -> bool:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode)
