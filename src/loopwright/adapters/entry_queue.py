"""Lets callers in while there is room for them, by priority, and in the order they came."""

import asyncio
import itertools
from bisect import insort
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


class NoPlace(Exception):
    """There was no room for as long as the caller would wait."""


@dataclass(order=True, slots=True)
class _Caller:
    """One who waits; sorted by priority, then by arrival."""

    priority: int
    number: int
    limit: Callable[[], float] = field(compare=False)
    entry: "asyncio.Future[None]" = field(compare=False)


class EntryQueue:
    """Who is inside, and who waits to be. Of one event loop."""

    def __init__(self) -> None:
        """Begin empty."""
        self.num_inside = 0
        self._waiting: list[_Caller] = []
        self._numbers = itertools.count()

    @property
    def num_waiting(self) -> int:
        """Count those who are not inside yet."""
        return len(self._waiting)

    @asynccontextmanager
    async def place(
        self, *, priority: int, limit: Callable[[], float], longest_wait_seconds: float
    ) -> AsyncIterator[None]:
        """Wait to be let in, and stay inside for the block.

        Args:
            priority: smaller ones go first.
            limit: gives how many may be inside with this caller among them; asked again whenever
                somebody leaves, and by ``let_in``.
            longest_wait_seconds: patience of the caller.

        Raises:
            NoPlace: there was no room for so long.
        """
        try:
            async with asyncio.timeout(longest_wait_seconds):
                await self._enter(priority, limit)
        except TimeoutError as error:
            raise NoPlace from error
        try:
            yield
        finally:
            self._leave()

    def let_in(self) -> None:
        """Let in those there is room for; call it where a limit has grown."""
        for caller in [*self._waiting]:
            # One that is cancelled stays in the list until it takes notice.
            if not caller.entry.cancelled() and self.num_inside < caller.limit():
                self._waiting.remove(caller)
                self.num_inside += 1
                caller.entry.set_result(None)

    async def _enter(self, priority: int, limit: Callable[[], float]) -> None:
        entry = asyncio.get_running_loop().create_future()
        caller = _Caller(priority, next(self._numbers), limit, entry)
        insort(self._waiting, caller)
        self.let_in()
        try:
            await entry
        except asyncio.CancelledError:
            if entry.cancelled():
                self._waiting.remove(caller)
            else:  # let in, and cancelled before it took notice
                self._leave()
            raise

    def _leave(self) -> None:
        self.num_inside -= 1
        self.let_in()
