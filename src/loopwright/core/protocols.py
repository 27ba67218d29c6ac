"""What the platform asks of the outside world; ``adapters`` has the bodies and the fakes."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loopwright.contracts.engines import Completion, GenerateRequest
from loopwright.contracts.workspaces import (
    CommandRequest,
    CommandResult,
    Skipped,
    Workspace,
    WorkspaceFile,
)


class ObjectStore(Protocol):
    """Immutable objects by key. Blocking; safe to call from many threads."""

    def put(self, key: str, data: bytes) -> None:
        """Store ``data``; a second put of the same content is harmless.

        Raises:
            StoreError: the store could not take it.
        """
        ...

    def get(self, key: str) -> bytes:
        """Fetch an object whole.

        Raises:
            KeyError: there is none of this key.
            StoreError: the store could not give it.
        """
        ...

    def list_keys(self, prefix: str) -> Iterable[str]:
        """List every key that starts with ``prefix``, in order of bytes, over all pages."""
        ...

    def list_folders(self, prefix: str) -> Iterable[str]:
        """List what stands between ``prefix`` and the next ``/`` of keys, each once, in order."""
        ...

    def exists(self, key: str) -> bool:
        """Tell whether an object of this key is there."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error."""
        ...


class Blobs(Protocol):
    """Contents of workspace files by their sha256. Blocking; safe from many threads."""

    def at_hand(self, workspace: Workspace) -> AbstractContextManager[None]:
        """Have what the workspace does not carry itself on this host, and keep it there.

        Raises:
            StoreError: a content cannot be had.
        """
        ...

    def read(self, file: WorkspaceFile) -> bytes:
        """Give the content of a file, from itself or from the blobs.

        Raises:
            StoreError: it cannot be had.
        """
        ...

    def load(self, digest: str) -> Workspace:
        """Give a workspace that somebody kept.

        Raises:
            StoreError: it cannot be had; ``WorkspaceMissing`` when nobody has kept it.
        """
        ...

    def base_folder(self, digest: str) -> AbstractContextManager[Path]:
        """Give a folder of this host with the files of a kept workspace, to read only.

        Raises:
            StoreError: the workspace cannot be had.
            SandboxUnavailable: this host cannot hold the folder.
        """
        ...

    def is_kept(self, sha256: str) -> bool:
        """Tell whether the content is known to be in the store, and need not be carried."""
        ...


@dataclass(frozen=True, slots=True)
class JailRun:
    """A command's result, and the workspace it left."""

    result: CommandResult
    workspace: Workspace
    skipped: tuple[Skipped, ...] = ()
    """What it left that the workspace does not hold."""


class Jail(Protocol):
    """Runs commands, each in a fresh sandbox of its own. Blocking; safe from many threads."""

    def run(self, workspace: Workspace, request: CommandRequest) -> JailRun:
        """Run one command on a copy of ``workspace``.

        Raises:
            SandboxUnavailable: the host could not run it; says nothing of the command.
        """
        ...


class Engine(Protocol):
    """Serves completions for token ids."""

    async def generate(self, request: GenerateRequest) -> Completion:
        """Sample one completion by the version asked for.

        Raises:
            EngineUnavailable: the engine does not answer, or serves another version.
        """
        ...
