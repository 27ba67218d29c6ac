"""Workspaces by their digests: kept in the object store, cached on this host.

A workspace is one object: its manifest and, where all is small, the contents too. Contents of a
larger workspace are blobs of their own, shared by all workspaces that hold them. The object of the
workspace is written last, so one that is there is whole.
"""

import errno
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from loopwright.adapters.collect import lay_out, open_folder
from loopwright.adapters.compression import compress, decompress
from loopwright.adapters.host_cache import HostCache
from loopwright.adapters.packing import contents, is_packed, pack, proven, unpack
from loopwright.contracts.failures import (
    ArtifactDamaged,
    ContractError,
    SandboxUnavailable,
    StoreError,
    TaskError,
    WorkspaceMissing,
)
from loopwright.contracts.ids import blob_key, workspace_key
from loopwright.contracts.workspaces import Workspace, WorkspaceFile
from loopwright.core.differences import Difference, difference
from loopwright.core.protocols import Blobs, ObjectStore

T = TypeVar("T")

_logger = logging.getLogger(__name__)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_READ_ATTEMPTS = 3
_MAX_REMEMBERED = 1_000_000
_THREADS = 8


def is_digest(text: str) -> bool:
    """Tell whether a text is written as a workspace's digest is."""
    return _DIGEST.fullmatch(text) is not None


class Workspaces(Blobs):
    """The workspaces of one store. Blocking; safe from many threads.

    The cache folder belongs to the store: what is in it counts as stored. Without a store the
    cache is all there is, and what it evicts is gone.
    """

    def __init__(self, store: ObjectStore | None, cache: Path, *, max_bytes: int) -> None:
        """Name store and cache; nothing is read or written yet."""
        self._store = store
        self._folder = cache
        self._cache = HostCache(cache, max_bytes=max_bytes)
        self._kept: set[str] = set()
        self._kept_blobs: set[str] = set()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="workspaces")

    def keep(self, workspace: Workspace) -> str:
        """Store a workspace and give its digest; what this process stored before is not sent.

        Raises:
            StoreError: the store could not take it, or a content cannot be had.
        """
        digest = workspace.digest
        if self._has_kept(self._kept, digest, _workspace_name(digest)):
            return digest
        if not is_packed(workspace):
            self._keep_blobs(contents(workspace))
        self._put(workspace_key(digest), _workspace_name(digest), pack(workspace, self.read))
        _remember(self._kept, (digest,))
        return digest

    def load(self, digest: str) -> Workspace:
        """Give a workspace that somebody kept; its contents may be among the blobs.

        Raises:
            ContractError: this is no digest of a workspace.
            WorkspaceMissing: nobody has kept it.
            ArtifactDamaged: the store has something else under its key.
            StoreError: the store could not give it.
        """
        if not is_digest(digest):
            raise ContractError(
                f"{digest!r} names no workspace: expected 64 hexadecimal digits in lower case"
            )
        workspace = self._get(
            workspace_key(digest),
            _workspace_name(digest),
            lambda data: unpack(data, digest),
            what=f"workspace {digest}",
        )
        _remember(self._kept, (digest,))
        if not is_packed(workspace):
            _remember(self._kept_blobs, (file.sha256 for file in contents(workspace)))
        return workspace

    def diff(self, before: str, after: str) -> Difference:
        """Say what changed between two digests.

        Raises:
            ContractError: one is no digest of a workspace.
            StoreError: one cannot be had; ``WorkspaceMissing`` when nobody has kept it.
        """
        return difference(self.load(before), self.load(after))

    @contextmanager
    def base_folder(self, digest: str) -> Iterator[Path]:
        """Give a folder of this host with the files of a workspace, to read only.

        It is made once, owned by this process's user, and stays while the block runs.

        Raises:
            ContractError: this is no digest of a workspace.
            StoreError: the workspace cannot be had.
            TaskError: the workspace cannot be laid out.
            SandboxUnavailable: this host cannot hold the folder.
        """
        with ExitStack() as stack:
            try:
                held = self._cache.folder(digest, lambda folder: self._lay_out(digest, folder))
                folder = stack.enter_context(held)
            except OSError as error:
                raise SandboxUnavailable(
                    f"workspace {digest} cannot be laid out in {self._folder}: {error}"
                ) from error
            yield folder

    @contextmanager
    def at_hand(self, workspace: Workspace) -> Iterator[None]:
        """Fetch the blobs of a workspace that are not in the cache, and keep all of them there."""
        absent = {file.sha256: file for file in contents(workspace) if file.data is None}
        with self._cache.using(map(_blob_name, absent)):
            missing = [f for f in absent.values() if not self._cache.has(_blob_name(f.sha256))]
            self._in_threads(self.read, missing)
            yield

    def read(self, file: WorkspaceFile) -> bytes:
        """Give the content of a file, from itself, the cache or the store."""
        if file.data is not None or not file.size:
            return file.data or b""
        return self._get(
            blob_key(file.sha256),
            _blob_name(file.sha256),
            lambda data: proven(decompress(data, max_bytes=file.size), file.sha256),
            what=f"the content of {file.path!r}",
        )

    def is_kept(self, sha256: str) -> bool:
        """Tell whether this process has stored a content, or knows that it is."""
        return self._store is not None and sha256 in self._kept_blobs

    def _has_kept(self, known: set[str], digest: str, name: str) -> bool:
        """Tell whether there is nothing to send: the cache forgets, a store does not."""
        return digest in known if self._store is not None else self._cache.has(name)

    def _keep_blobs(self, files: Iterable[WorkspaceFile]) -> None:
        def is_new(file: WorkspaceFile) -> bool:
            return not self._has_kept(self._kept_blobs, file.sha256, _blob_name(file.sha256))

        new = {file.sha256: file for file in files if is_new(file)}
        self._in_threads(self._keep_blob, list(new.values()))
        _remember(self._kept_blobs, new)

    def _keep_blob(self, file: WorkspaceFile) -> None:
        self._put(blob_key(file.sha256), _blob_name(file.sha256), compress(self.read(file)))

    def _lay_out(self, digest: str, folder: Path) -> int:
        workspace = self.load(digest)
        with open_folder(folder) as opened:
            try:
                lay_out(workspace, opened, owner=os.geteuid(), blobs=self)
            except TaskError as error:
                cause = error.__cause__
                if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise cause from error  # it is this host that is full
                raise
        return workspace.num_bytes

    def _put(self, key: str, name: str, data: bytes) -> None:
        if self._store is not None:
            self._store.put(key, data)
        self._cache_object(name, data)

    def _get(self, key: str, name: str, decode: Callable[[bytes], T], *, what: str) -> T:
        """Give what an object holds, from the cache or the store, proven by ``decode``."""
        found = self._cached(name, decode)
        if found is not None:
            return found
        if self._store is None:
            raise WorkspaceMissing(f"{what} is not on this host, and there is no store to ask")
        problem: ValueError | None = None
        for _ in range(_READ_ATTEMPTS):
            try:
                data = self._store.get(key)
            except KeyError as error:
                raise WorkspaceMissing(f"{what} is not in the store (key {key})") from error
            try:
                found = decode(data)
            except ValueError as error:
                problem = error
                continue
            self._cache_object(name, data)
            return found
        raise ArtifactDamaged(f"{what} is damaged in the store (key {key}): {problem}")

    def _cached(self, name: str, decode: Callable[[bytes], T]) -> T | None:
        try:
            data = self._cache.read(name)
            return None if data is None else decode(data)
        except (OSError, ValueError) as error:
            _logger.warning("%s in %s is damaged and removed: %s", name, self._folder, error)
            self._cache.discard(name)
            return None

    def _cache_object(self, name: str, data: bytes) -> None:
        """Keep an object on this host, which only speeds up what a store has."""
        try:
            self._cache.write(name, data)
        except OSError as error:
            if self._store is None:
                raise StoreError(f"{name} cannot be kept in {self._folder}: {error}") from error
            _logger.warning("%s cannot be cached in %s: %s", name, self._folder, error)

    def _in_threads(self, call: Callable[[T], object], items: Sequence[T]) -> None:
        """Call for each item; few are not worth the threads."""
        for _ in self._threads.map(call, items) if len(items) > 2 else map(call, items):
            pass


def _remember(known: set[str], digests: Iterable[str]) -> None:
    """Add to what is known to be stored; forgetting costs no more than storing it again."""
    if len(known) > _MAX_REMEMBERED:
        known.clear()
    known.update(digests)


def _workspace_name(digest: str) -> str:
    return f"workspace-{digest}"


def _blob_name(sha256: str) -> str:
    return f"blob-{sha256}"
