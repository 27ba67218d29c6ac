"""A folder of this host with a bound on its size, which several processes share.

It holds immutable objects and whole folders, each by its name. They appear at once under their
names; what was used longest ago goes first; what somebody declares to use stays. Whoever reads an
object proves its content: a host that crashes may lose what was written last, and disks rot.
"""

import fcntl
import itertools
import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_logger = logging.getLogger(__name__)
_UNFINISHED = "unfinished-"
_ABANDONED_SECONDS = 3600.0
"""Age at which something unfinished belongs to a process that died."""
_SCAN_SHARE = 16
"""The folder is measured after each such part of its bound was written."""
_PAGE_BYTES = 4096
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class HostCache:
    """Objects and folders below one folder. Safe for many threads and processes."""

    def __init__(self, root: Path, *, max_bytes: int) -> None:
        """Name the cache; nothing is made yet."""
        self._objects, self._folders, self._uses = root / "objects", root / "folders", root / "uses"
        self._lock = root / "lock"
        self._max_bytes = max_bytes
        self._unmeasured_bytes = max_bytes
        self._making = threading.Lock()
        self._serial = itertools.count()

    def read(self, name: str) -> bytes | None:
        """Give an object; None when it is not here."""
        path = self._objects / name
        try:
            with path.open("rb") as file:
                os.utime(file.fileno())
                return file.read()
        except FileNotFoundError:
            return None

    def has(self, name: str) -> bool:
        """Tell whether an object is here."""
        return (self._objects / name).exists()

    def write(self, name: str, data: bytes) -> None:
        """Keep an object; one of this name that is here is replaced.

        Raises:
            OSError: it cannot be written.
        """
        unfinished = self._objects / f"{_UNFINISHED}{self._unique()}"
        try:
            self._objects.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(data)
            unfinished.replace(self._objects / name)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        self._grow(len(data))

    def discard(self, name: str) -> None:
        """Remove an object that is damaged."""
        with suppress(OSError):
            (self._objects / name).unlink()

    @contextmanager
    def folder(self, name: str, make: Callable[[Path], int]) -> Iterator[Path]:
        """Give a folder, made by ``make`` if it is not here; it stays while the block runs.

        ``make`` fills an empty folder and gives the number of bytes in it.

        Raises:
            OSError: it cannot be made.
        """
        folder = self._folders / name
        with self.using([name]):
            if not _is_whole(folder):
                with self._making:
                    self._make(folder, make)
            os.utime(folder / "about")
            yield folder / "files"

    @contextmanager
    def using(self, names: Iterable[str]) -> Iterator[None]:
        """Keep objects and folders from being evicted, by any process, while the block runs."""
        listed = "\n".join(names).encode()
        if not listed:
            yield
            return
        self._uses.mkdir(parents=True, exist_ok=True)
        path = self._uses / self._unique()
        with self._locked(fcntl.LOCK_SH):
            use = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            fcntl.flock(use, fcntl.LOCK_EX)
            os.write(use, listed)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(use)

    def _make(self, folder: Path, make: Callable[[Path], int]) -> None:
        if _is_whole(folder):
            return  # another thread was faster
        unfinished = self._folders / f"{_UNFINISHED}{self._unique()}"
        files = unfinished / "files"
        files.mkdir(parents=True)
        try:
            num_bytes = make(files)
            (unfinished / "about").write_text(f"{num_bytes} {_boot_id()}")
            self._move_away(folder)
            unfinished.rename(folder)
        except OSError:
            if not _is_whole(folder):
                raise
            return  # another process was faster, and what it made is the same
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        self._grow(num_bytes)

    def _move_away(self, folder: Path) -> None:
        """Remove a folder of an earlier boot: nobody uses it, and it may not be whole."""
        with suppress(FileNotFoundError):
            if not _is_whole(folder):
                shutil.rmtree(folder.rename(self._folders / f"{_UNFINISHED}{self._unique()}"))

    def _grow(self, num_bytes: int) -> None:
        self._unmeasured_bytes += _on_disk(num_bytes)
        if self._unmeasured_bytes >= self._max_bytes / _SCAN_SHARE:
            is_within = self._evict()
            self._unmeasured_bytes = 0 if is_within else self._max_bytes

    def _evict(self) -> bool:
        """Remove what was used longest ago until a part of the bound is free; tell if it is."""
        with self._locked(fcntl.LOCK_EX):
            doomed = list(self._abandoned())
            entries = sorted(self._entries(), key=lambda entry: entry.used)
            excess = sum(entry.num_bytes for entry in entries) - self._max_bytes
            if excess > 0:
                for entry in self._oldest(entries, excess + self._max_bytes // _SCAN_SHARE):
                    excess -= entry.num_bytes
                    doomed.append(self._out_of_the_way(entry.path))
        for path in doomed:
            _remove(path)
        return excess <= 0

    def _oldest(self, entries: "list[_Entry]", num_bytes: int) -> "Iterator[_Entry]":
        """Choose entries that nobody uses, the oldest first, until they make up this much."""
        in_use = set(self._names_in_use())
        for entry in entries:
            if num_bytes <= 0:
                return
            if entry.path.name not in in_use:
                num_bytes -= entry.num_bytes
                yield entry

    def _out_of_the_way(self, path: Path) -> Path:
        """Take a name away at once; what was under it is removed when others need not wait."""
        with suppress(FileNotFoundError):
            return path.rename(path.with_name(f"{_UNFINISHED}{self._unique()}"))
        return path

    def _entries(self) -> "Iterator[_Entry]":
        for found in _listed(self._objects):
            with suppress(FileNotFoundError):
                about = found.stat()
                yield _Entry(Path(found.path), _on_disk(about.st_size), about.st_mtime)
        for found in _listed(self._folders):
            about_file = Path(found.path) / "about"
            with suppress(FileNotFoundError):
                num_bytes = int(about_file.read_text().split()[0])
                yield _Entry(Path(found.path), num_bytes, about_file.stat().st_mtime)

    def _abandoned(self) -> Iterator[Path]:
        for folder in (self._objects, self._folders):
            for found in _listed(folder, is_finished=False):
                with suppress(FileNotFoundError):
                    if time.time() - found.stat().st_mtime > _ABANDONED_SECONDS:
                        yield Path(found.path)

    def _names_in_use(self) -> Iterator[str]:
        """List what living processes use, and forget the others' lists."""
        for found in _listed(self._uses):
            with suppress(FileNotFoundError), Path(found.path).open() as use:
                try:
                    fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield from use.read().splitlines()
                else:
                    Path(found.path).unlink()

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, kind)
            yield
        finally:
            os.close(lock)

    def _unique(self) -> str:
        return f"{os.getpid()}-{next(self._serial)}-{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    num_bytes: int
    used: float
    """Unix time of the last use."""


def _listed(folder: Path, *, is_finished: bool = True) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return [e for e in entries if e.name.startswith(_UNFINISHED) != is_finished]
    except FileNotFoundError:
        return []


def _on_disk(num_bytes: int) -> int:
    return -(-num_bytes // _PAGE_BYTES) * _PAGE_BYTES


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_whole(folder: Path) -> bool:
    """Tell whether a folder was finished since this host booted, so that no crash hurt it."""
    try:
        return (folder / "about").read_text().split()[1:] == [_boot_id()]
    except FileNotFoundError:
        return False


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip()
