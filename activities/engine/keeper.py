"""Sees to it that the engine serves the version it is to serve, whatever happens to its server."""

import asyncio
import contextlib
import logging
from types import TracebackType
from typing import Self

from loopwright.activities.engine.leases import Leases
from loopwright.activities.engine.policy_directories import PolicyDirectories
from loopwright.adapters.vllm_admin import VllmAdmin
from loopwright.contracts.engines import InFlight
from loopwright.contracts.failures import EngineUnavailable, LoopError
from loopwright.contracts.policies import CheckpointRef

_logger = logging.getLogger(__name__)

_LONGEST_PAUSE = 4
"""Intervals between two looks at a server in trouble."""


class EngineKeeper:
    """Publishes versions, and again when a restarted server has lost them.

    As an asynchronous context it looks after the server in the background. Until it has done its
    work a restarted server samples from its first weights; clients refuse those completions by
    their version.
    """

    def __init__(
        self,
        admin: VllmAdmin,
        leases: Leases,
        directories: PolicyDirectories,
        *,
        interval_seconds: float = 1.0,
    ) -> None:
        """Look after the server of ``admin`` every ``interval_seconds``."""
        self._admin = admin
        self._leases = leases
        self._directories = directories
        self._interval_seconds = interval_seconds
        self._publishing = asyncio.Lock()
        self._is_loaded = True
        self._trouble = ""
        self._watch: asyncio.Task[None] | None = None

    async def publish(
        self, checkpoint: CheckpointRef, *, holder: str, in_flight: InFlight = "re_prefill"
    ) -> str:
        """Make ``checkpoint`` the version that is served, now and after restarts; give its label.

        Raises:
            ContractError: ``holder`` does not hold the engine.
            EngineUnavailable: the server could not take the version.
            StoreError: the checkpoint could not be fetched.
        """
        async with self._publishing:
            self._leases.check_holder(holder)
            # Fetched first: a checkpoint that cannot be had must not become the one to serve.
            await asyncio.to_thread(self._directories.get, checkpoint)
            self._leases.check_holder(holder)
            self._is_loaded &= self._leases.record.checkpoint == checkpoint
            self._leases.set_checkpoint(checkpoint)
            await self._serve(checkpoint, in_flight)
            await asyncio.to_thread(self._directories.prune, checkpoint)
            return checkpoint.policy.label

    async def look_after(self) -> None:
        """Bring back the recorded version if another is served, and resume a paused server.

        Raises:
            EngineUnavailable: the server does not answer.
            StoreError: the version could not be fetched.
        """
        async with self._publishing:
            checkpoint = self._leases.record.checkpoint
            if checkpoint is not None:
                await self._serve(checkpoint)
            else:
                await self._resume()

    async def _serve(self, checkpoint: CheckpointRef, in_flight: InFlight = "re_prefill") -> None:
        label = checkpoint.policy.label
        served = await self._admin.served_label()
        if served == label and self._is_loaded:
            await self._resume()
            return
        directory = await asyncio.to_thread(self._directories.get, checkpoint)
        # Only a whole publication proves what a label stands for.
        self._is_loaded = False
        await self._admin.publish(directory, label, in_flight=in_flight)
        self._is_loaded = True
        _logger.info("engine served %s, now serves %s", served, label)

    async def _resume(self) -> None:
        """Resume a server that whoever paused it has forgotten: publications hold the lock."""
        if await self._admin.is_paused():
            await self._admin.resume()
            _logger.warning("engine was left paused; resumed")

    async def _look_after_for_ever(self) -> None:
        pause = self._interval_seconds
        while True:
            try:
                await self.look_after()
                self._trouble, pause = "", self._interval_seconds
            except (LoopError, OSError) as error:
                self._say(error)
                pause = min(2 * pause, _LONGEST_PAUSE * self._interval_seconds)
            await asyncio.sleep(pause)

    def _say(self, error: Exception) -> None:
        """Log a trouble once, not every second that it lasts."""
        kind = type(error).__name__
        if kind != self._trouble:
            level = logging.INFO if isinstance(error, EngineUnavailable) else logging.WARNING
            _logger.log(level, "cannot look after the engine: %s", error)
        self._trouble = kind

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._look_after_for_ever())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._watch is not None
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch
