"""An engine that is asked for no more at once than it bears; the rest waits here, by priority."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from loopwright.adapters.entry_queue import EntryQueue, NoPlace
from loopwright.adapters.vllm_http import Closing
from loopwright.contracts.engines import Completion, GenerateRequest
from loopwright.contracts.failures import EngineUnavailable, LoopError
from loopwright.core.concurrency import ConcurrencyController, EngineLoad
from loopwright.core.protocols import Engine

_logger = logging.getLogger(__name__)


class MeasuredEngine(Engine, Protocol):
    """An engine that tells how busy it is."""

    async def load(self) -> EngineLoad | None:
        """Say how busy it is; None where it does not know.

        Raises:
            EngineUnavailable: it does not answer.
        """
        ...


class LimitedEngine(Closing, Engine):
    """One engine behind an adaptive limit. An asynchronous context that ends its polls.

    The engine is polled while anything is asked of it, and not asked before the first poll has an
    answer. Where polls fail, the limit stays as it is: at the most, if none ever succeeded.
    """

    def __init__(
        self,
        engine: MeasuredEngine,
        *,
        name: str,
        max_concurrent: int,
        poll_seconds: float = 2.0,
        longest_wait_seconds: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Put a limit before an engine.

        Args:
            engine: what is asked.
            name: its name, for messages.
            max_concurrent: completions at once that are never exceeded.
            poll_seconds: time between two polls.
            longest_wait_seconds: how long a request waits before it is told to come again.
            clock: seconds; never goes back.
        """
        self._engine = engine
        self._name = name
        self._controller = ConcurrencyController(max_concurrent)
        self._queue = EntryQueue()
        self._poll_seconds = poll_seconds
        self._longest_wait_seconds = longest_wait_seconds
        self._clock = clock
        self._longest_tokens = 0
        self._has_polled = False
        self._is_blind = False
        self._polls: asyncio.Task[None] | None = None

    @property
    def limit(self) -> int:
        """Completions that may be asked for at once now."""
        return self._controller.limit

    async def generate(self, request: GenerateRequest) -> Completion:
        """Wait for a place, then sample one completion.

        Raises:
            EngineUnavailable: the engine is, or there was no place for too long.
            ContractError: the engine refuses the request.
        """
        self._longest_tokens = max(
            self._longest_tokens, len(request.token_ids) + request.max_tokens
        )
        came = self._clock()
        self._start_polls()
        try:
            async with self._queue.place(
                priority=request.priority_key,
                limit=lambda: self.limit if self._has_polled else 0,
                longest_wait_seconds=self._longest_wait_seconds,
            ):
                waited = self._clock() - came
                completion = await self._engine.generate(request)
                self._controller.completed(num_in_flight=self._queue.num_inside, now=self._clock())
        except NoPlace as error:
            raise EngineUnavailable(self._overrun()) from error
        return completion.model_copy(update={"waited_seconds": waited})

    async def close(self) -> None:
        """End the polls; whoever waits is not let in any more."""
        if self._polls is not None:
            self._polls.cancel()
            await asyncio.wait([self._polls])

    def _overrun(self) -> str:
        return (
            f"engine {self._name} has had no place for this completion in "
            f"{self._longest_wait_seconds:g} seconds: it bears {self.limit} at once, and "
            f"{self._queue.num_waiting} more wait; add engines, or run fewer episodes at once"
        )

    def _start_polls(self) -> None:
        if self._polls is None or self._polls.done():
            self._polls = asyncio.create_task(self._poll_while_busy())

    async def _poll_while_busy(self) -> None:
        while self._queue.num_inside or self._queue.num_waiting:
            await self._poll()
            await asyncio.sleep(self._poll_seconds)

    async def _poll(self) -> None:
        before = self.limit
        load = await self._load()
        if load is not None:
            self._controller.polled(
                load,
                num_in_flight=self._queue.num_inside,
                longest_tokens=self._longest_tokens,
                now=self._clock(),
            )
        if self.limit < before:
            _logger.info("engine %s: at most %d completions at once", self._name, self.limit)
        self._has_polled = True
        self._queue.let_in()

    async def _load(self) -> EngineLoad | None:
        """Ask the engine how busy it is; say so once where it gives no answer."""
        reason = "it keeps no statistics"
        load = None
        try:
            load = await self._engine.load()
        except LoopError as error:
            reason = str(error)
        if load is None and not self._is_blind:
            _logger.warning(
                "engine %s does not say how busy it is; at most %d completions at once: %s",
                self._name,
                self.limit,
                reason,
            )
        self._is_blind = load is None
        return load
