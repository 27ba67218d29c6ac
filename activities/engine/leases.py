"""Who holds the engine, and which version it is to serve: one small file beside the engine.

The engine's worker is the only writer, so the file outlives workers and servers and agrees with
what was last granted.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pydantic

from loopwright.contracts.base import Contract
from loopwright.contracts.failures import ContractError
from loopwright.contracts.policies import CheckpointRef

IsRunning = Callable[[str], Awaitable[bool]]
"""Tells whether the workflow of an id is still running."""


class EngineRecord(Contract):
    """What is known of one engine."""

    holder: str = ""
    """Workflow id of the holder; empty when the engine is free."""
    checkpoint: CheckpointRef | None = None
    """The version the engine is to serve; None before the first publication."""


class Leases:
    """The lease of one engine."""

    def __init__(self, path: Path, *, is_running: IsRunning) -> None:
        """Read the record at ``path``; without one the engine is free.

        Raises:
            ContractError: the file is not such a record.
        """
        self._path = path
        self._is_running = is_running
        self._lock = asyncio.Lock()
        self._record = _read(path)

    @property
    def record(self) -> EngineRecord:
        """The engine's record."""
        return self._record

    async def acquire(self, holder: str) -> str:
        """Grant the lease to ``holder`` unless another living workflow has it; give who has it."""
        async with self._lock:
            present = self._record.holder
            if present == holder:
                return holder
            if present and await self._is_running(present):
                return present
            self._write(self._record.model_copy(update={"holder": holder}))
            return holder

    async def release(self, holder: str) -> None:
        """Free the engine; no effect when another has it."""
        async with self._lock:
            if self._record.holder == holder:
                self._write(self._record.model_copy(update={"holder": ""}))

    def check_holder(self, holder: str) -> None:
        """Refuse a workflow that does not hold the engine.

        Raises:
            ContractError: with who holds it.
        """
        present = self._record.holder
        if present != holder:
            raise ContractError(
                f"{holder} does not hold the engine; it is held by {present or 'nobody'}"
            )

    def set_checkpoint(self, checkpoint: CheckpointRef) -> None:
        """Record the version the engine is to serve from now on."""
        if self._record.checkpoint != checkpoint:
            self._write(self._record.model_copy(update={"checkpoint": checkpoint}))

    def _write(self, record: EngineRecord) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        with new.open("w") as file:
            file.write(record.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
        self._record = record


def _read(path: Path) -> EngineRecord:
    try:
        return EngineRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return EngineRecord()
    except pydantic.ValidationError as error:
        raise ContractError(
            f"{path} is not the record of an engine; delete it to free the engine: {error}"
        ) from error
