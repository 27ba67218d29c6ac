"""Iterations that overlap: each collects while those before it learn."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from loopwright.contracts.configs import IterationConfig
from loopwright.contracts.iterations import IterationResult
from loopwright.contracts.policies import CheckpointRef

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import all_of
    from loopwright.workflows.iteration import LEARN_FROM, IterationWorkflow
    from loopwright.workflows.loop_children import IterationHandle


@dataclass
class Pipeline:
    """The unfinished iterations of a loop, oldest first; one at a time where none may overlap."""

    start: Callable[[int], Awaitable[IterationHandle]]
    """Starts the iteration behind so many unfinished ones."""
    may_start: Callable[[int], bool]
    """Tells whether the loop wants an iteration behind so many unfinished ones."""
    finish: Callable[[IterationResult], Awaitable[CheckpointRef]]
    """Takes the result of the oldest one, and gives the version the next is to learn from."""
    is_cut_short: Callable[[], bool]
    """Tells whether what is open is to be cancelled, also where nothing here noticed."""
    num_collected: int = 0
    """Iterations that have had their groups, finished ones included."""
    _open: deque[IterationHandle] = field(default_factory=deque)
    _num_finished: int = 0

    async def run(self) -> None:
        """Run iterations until the loop wants no more and the last has ended.

        Where it is cancelled, or one of them fails, the others are cancelled, too; what they came
        to is told in any case.
        """
        try:
            while self._is_due() or self._open:
                await self._start_if_due()
                self._raise_if_cut_short()
                await workflow.wait_condition(lambda: self._open[0].done() or self._is_due())
                await self._finish_oldest()
        except (Exception, asyncio.CancelledError):
            await self._cancel()
            raise

    @property
    def num_open(self) -> int:
        """Count the unfinished iterations."""
        return len(self._open)

    def _is_due(self) -> bool:
        """Tell whether another may start: it would collect alone."""
        num_collecting = len(self._open) + self._num_finished - self.num_collected
        return num_collecting <= 0 and self.may_start(len(self._open))

    async def _start_if_due(self) -> None:
        if self._is_due():
            self._open.append(await self.start(len(self._open)))

    def _raise_if_cut_short(self) -> None:
        """Raise the cancellation that a child took for its own while it was awaited."""
        if self.is_cut_short():
            raise asyncio.CancelledError

    async def configure(self, config: IterationConfig) -> None:
        """Tell the open iterations what they are to follow from now on."""
        for handle in list(self._open):
            with suppress(ApplicationError):  # it has just ended
                await handle.signal(IterationWorkflow.configure, config)

    async def _finish_oldest(self) -> None:
        if not self._open[0].done():
            return
        result = await self._open[0]
        self._open.popleft()
        self._num_finished += 1
        self.num_collected = max(self.num_collected, self._num_finished)
        newest = await self.finish(result)
        if self._open and not self._open[0].done():
            await self._open[0].signal(LEARN_FROM, newest)

    async def _cancel(self) -> None:
        """Cancel what is open, and take the results in order."""
        for handle in self._open:
            handle.cancel()
        for result in await all_of(self._open):
            if result is not None:
                await self.finish(result)
