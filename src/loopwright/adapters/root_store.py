"""The folder that roots are kept in: each under its digest, made elsewhere and moved in whole.

Several processes may use one folder. What is in the making stands below ``incoming``, locked by
its maker, so that the next one can tell what a killed maker left and takes it away.
"""

import ctypes
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from loopwright.adapters.file_tree import FOLDER_FLAGS
from loopwright.contracts.base import SCHEMA_VERSION, Contract
from loopwright.contracts.failures import RootMissing, SandboxUnavailable, UserError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_UNSAFE = re.compile(r"[:,\\\s]")
"""What the options of an overlay mount give a meaning to."""
_libc = ctypes.CDLL(None, use_errno=True)


class RootKind(StrEnum):
    """What a jail can have from the host."""

    ROOT = "root"
    """A whole root file system."""
    PACKAGES = "packages"
    """A folder of Python packages."""


class RootSource(Contract):
    """Where a root was imported from, the first time."""

    path: str
    name: str
    image: str = ""
    """Digest of an OCI image's manifest; empty for a folder."""
    tag: str = ""


class SkippedEntry(Contract):
    """Something that a root does not hold."""

    path: str
    reason: str


class RootRecord(Contract):
    """What is known of a root; kept beside its files and no part of its digest."""

    schema_version: int = SCHEMA_VERSION
    kind: RootKind
    source: RootSource
    num_entries: int
    num_bytes: int
    num_skipped: int = 0
    skipped: tuple[SkippedEntry, ...] = ()
    """The first thousand."""


@dataclass(frozen=True, slots=True)
class Root:
    """A root that is there."""

    digest: str
    kind: RootKind
    folder: Path
    """Its files: what a jail mounts, read-only."""
    names: tuple[str, ...]
    record: RootRecord


class RootStore:
    """Roots below one folder, which jails must be able to reach. Safe from many processes."""

    def __init__(self, folder: Path) -> None:
        """Remember where; nothing is touched."""
        self.folder = Path(os.path.realpath(folder))

    def get(self, name: str) -> Root:
        """Find a root by its name or its whole digest.

        Raises:
            RootMissing: there is none.
        """
        names = self._names()
        digest = name if _DIGEST.fullmatch(name) else names.get(name, "")
        if not digest or not (self.folder / digest).is_dir():
            raise RootMissing(
                f"there is no root {name!r} in {self.folder}; `loopwright sandbox root list` shows "
                "what there is, `loopwright sandbox root import` adds to it"
            )
        return self._read(digest, names)

    def list_roots(self) -> list[Root]:
        """Give all roots, by name, those without a name last."""
        names = self._names()
        found = sorted(path.name for path in _folders(self.folder) if _DIGEST.fullmatch(path.name))
        roots = [self._read(digest, names) for digest in found]
        return sorted(roots, key=lambda root: (not root.names, root.names, root.digest))

    @contextmanager
    def hold(self, name: str) -> Iterator[Root]:
        """Keep a root from being removed, as long as the block lasts.

        Raises:
            RootMissing: there is none.
        """
        root = self.get(name)
        try:
            opened = _lock(root.folder.parent, fcntl.LOCK_SH)
        except FileNotFoundError:
            raise RootMissing(f"root {root.digest} was removed from {self.folder}") from None
        try:
            yield self.get(root.digest)
        finally:
            os.close(opened)

    def remove(self, name: str) -> Root:
        """Remove a name, and the root with its last one; a digest removes it with all its names.

        Raises:
            RootMissing: there is none.
            UserError: somebody holds it.
        """
        root = self.get(name)
        with self._exclusive():
            going = [own for own in root.names if name in (own, root.digest)]
            if len(going) < len(root.names):
                (self.folder / "names" / name).unlink()
                return root
            try:
                with _locked(root.folder.parent, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    for own in going:
                        (self.folder / "names" / own).unlink()
                    gone = Path(tempfile.mkdtemp(dir=self._incoming))
                    root.folder.parent.rename(gone)
            except BlockingIOError:
                raise UserError(f"{name!r} is in use by a jail; remove it afterwards") from None
        shutil.rmtree(gone, ignore_errors=True)  # the next import sweeps, and may be sweeping now
        return root

    @contextmanager
    def making(self) -> Iterator[Path]:
        """Give an empty folder, which disappears at the end unless it was published.

        Raises:
            UserError: jails could not reach this store.
        """
        self._prepare()
        with self._exclusive():
            self._sweep()
            folder = Path(tempfile.mkdtemp(dir=self._incoming))
            opened = _lock(folder, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(opened)

    def publish(self, made: Path, *, digest: str, name: str) -> Root:
        """Move what was made to its digest, unless it is there already, and name it."""
        made.chmod(0o755)
        _flush(made)
        target = self.folder / digest
        with self._exclusive():
            if not target.is_dir():
                made.rename(target)
            link = Path(tempfile.mkdtemp(dir=self._incoming)) / name
            link.symlink_to(Path("..") / digest)
            link.replace(self.folder / "names" / name)
            link.parent.rmdir()
        return self.get(digest)

    @property
    def _incoming(self) -> Path:
        return self.folder / "incoming"

    def _prepare(self) -> None:
        if _UNSAFE.search(str(self.folder)):
            raise UserError(
                f"{str(self.folder)!r} cannot hold roots: expected a path without ':', ',', "
                "backslash and spaces; set LOOPWRIGHT_ROOTS_DIR to another"
            )
        for folder in (*reversed(self.folder.parents), self.folder, self.folder / "names"):
            if not folder.exists():
                folder.mkdir()
                folder.chmod(0o755)
            if not folder.stat().st_mode & 0o001:
                raise UserError(
                    f"jails cannot reach {self.folder}, since {folder} has mode "
                    f"{folder.stat().st_mode & 0o777:o}; set LOOPWRIGHT_ROOTS_DIR to a folder "
                    "whose parents all may be entered by others"
                )
        self._incoming.mkdir(mode=0o700, exist_ok=True)

    def _sweep(self) -> None:
        """Take away what makers left that were killed."""
        for folder in _folders(self._incoming):
            with suppress(BlockingIOError), _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with _locked(self.folder, fcntl.LOCK_EX):
            yield

    def _names(self) -> dict[str, str]:
        links = self.folder / "names"
        found = sorted(links.iterdir()) if links.is_dir() else []
        return {link.name: link.readlink().name for link in found if link.is_symlink()}

    def _read(self, digest: str, names: dict[str, str]) -> Root:
        path = self.folder / digest / "root.json"
        try:
            record = RootRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise SandboxUnavailable(
                f"{path} cannot be read; remove {path.parent} and import it again"
            ) from error
        return Root(
            digest=digest,
            kind=record.kind,
            folder=self.folder / digest / "tree",
            names=tuple(name for name, named in names.items() if named == digest),
            record=record,
        )


def check_name(name: str) -> None:
    """Refuse what cannot name a root.

    Raises:
        UserError: it could be a digest or a path, or is too long.
    """
    if not _NAME.fullmatch(name) or _DIGEST.fullmatch(name):
        raise UserError(
            f"{name!r} cannot name a root: expected 1 to 64 letters, digits, '.', '_', ':' and "
            "'-', a letter or digit first, and no digest"
        )


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


@contextmanager
def _locked(folder: Path, kind: int) -> Iterator[None]:
    opened = _lock(folder, kind)
    try:
        yield
    finally:
        os.close(opened)


def _lock(folder: Path, kind: int) -> int:
    """Lock a folder until the descriptor is closed or this process dies."""
    opened = os.open(folder, FOLDER_FLAGS)
    try:
        fcntl.flock(opened, kind)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _flush(folder: Path) -> None:
    """Have the folder's file system on its disk, so that a power failure leaves no half root."""
    opened = os.open(folder, FOLDER_FLAGS)
    try:
        if _libc.syncfs(opened):
            raise OSError(ctypes.get_errno(), f"cannot flush {folder}")
    finally:
        os.close(opened)
