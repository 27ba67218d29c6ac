"""Collect the groups of an iteration: enough of them, and no more losses than the loop bears."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from loopwright.contracts.configs import IterationConfig
from loopwright.contracts.groups import DropCounts, GroupResult, ParkedRef
from loopwright.contracts.progress import Trouble
from loopwright.contracts.tasks import TaskRef
from loopwright.core import details, run_limits, states

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import all_of
    from loopwright.workflows.fan_out import FanOut, OpenGroup
    from loopwright.workflows.group import GroupWorkflow


@dataclass
class Collection:
    """The groups of one iteration while they run."""

    fan_out: FanOut
    config: IterationConfig
    drops: DropCounts
    """Groups that the loop has lost so far; counted on."""
    on_change: Callable[[], None]
    """Called when a group has begun or ended, or none has for long."""
    resumed: list[ParkedRef] = field(default_factory=list)
    """Carried groups that have gone on."""
    ended: list[GroupResult] = field(default_factory=list)
    """In the order of their ends."""
    troubles: deque[Trouble] = field(default_factory=lambda: deque(maxlen=details.MAX_TROUBLES))
    """The newest groups that were lost to the platform or their task."""
    is_silent: bool = False
    """Whether nothing has ended for as long as the watchdog waits."""
    _waiting: deque[TaskRef | ParkedRef] = field(default_factory=deque)
    _spares: deque[TaskRef] = field(default_factory=deque)
    _begun: list[OpenGroup] = field(default_factory=list)
    _num_taken: int = 0

    async def run(
        self, tasks: Sequence[TaskRef], spares: Sequence[TaskRef], carried: Sequence[ParkedRef]
    ) -> list[GroupResult]:
        """Run groups until enough are scored, and give all of them in the order they began.

        A group that is lost to the platform or its task is replaced by a spare. Where this
        workflow is cancelled, every group tells what it came to.

        Raises:
            ApplicationError: ``TooManyLosses``, where the loop has lost more groups than it bears,
                or too few groups are scored.
        """
        self._waiting.extend([*carried, *tasks])
        self._spares.extend(spares)
        watchdog = asyncio.create_task(self._watch())
        try:
            await self._collect()
            await self._settle()
            self._check_enough()
        except (ApplicationError, asyncio.CancelledError) as error:
            self._drop(self._begun)
            if isinstance(error, ApplicationError) and workflow.cancellation_reason() is None:
                await self._results()
                raise
        finally:
            watchdog.cancel()
        return await self._results()

    @property
    def num_open(self) -> int:
        """Count the groups under way."""
        return sum(not group.task.done() for group in self._begun)

    @property
    def num_waiting(self) -> int:
        """Count the groups that have not begun."""
        return len(self._waiting)

    @property
    def num_scored(self) -> int:
        """Count the groups that have the episodes they need."""
        return sum(run_limits.is_scored(group) for group in self.ended)

    async def _collect(self) -> None:
        while (self._waiting or self.num_open) and not self._is_enough():
            while self._may_begin():
                self._begin(self._waiting.popleft())
            self.on_change()
            await workflow.wait_condition(self._has_news)
            self._take_ended()

    def _is_enough(self) -> bool:
        """Tell whether the rest is not to be waited for."""
        return self.config.stragglers != "wait" and self.num_scored >= self.config.num_tasks

    def _may_begin(self) -> bool:
        limit = self.config.max_open_groups
        return bool(self._waiting) and (limit is None or self.num_open < limit)

    def _has_news(self) -> bool:
        return len(self._begun) - self.num_open > self._num_taken or self._may_begin()

    def _begin(self, work: TaskRef | ParkedRef) -> None:
        if isinstance(work, ParkedRef):
            self.resumed.append(work)
            group = self.fan_out.begin(work.task, work)
        else:
            group = self.fan_out.begin(work)
        group.task.add_done_callback(partial(self._note_end, group))
        self._begun.append(group)

    def _note_end(self, group: OpenGroup, task: "asyncio.Task[GroupResult]") -> None:
        if task.cancelled() or task.exception() is not None:
            return
        result = task.result()
        self.ended.append(result)
        if states.group_state(result) == "lost":
            self.troubles.append(Trouble(workflow_id=group.workflow_id, reason=result.reason))

    def _take_ended(self) -> None:
        """Count what ended since, and let spares take the place of what is lost."""
        news = self.ended[self._num_taken :]
        self._num_taken += len(news)
        self.is_silent &= not news
        self.drops = run_limits.count_drops(self.drops, news)
        if reason := run_limits.limit_passed(self.drops, self.config):
            raise _too_many_losses(reason)
        for group in news:
            if not run_limits.is_scored(group) and self._spares:
                self._waiting.append(self._spares.popleft())

    async def _settle(self) -> None:
        """End what is open although enough is scored, as the configuration says."""
        open_groups = [group for group in self._begun if not group.task.done()]
        if self.config.stragglers == "drop":
            self._drop(open_groups)
        for group in open_groups:
            if self.config.stragglers == "carry" and group.handle is not None:
                with suppress(ApplicationError):  # it has just ended
                    await group.handle.signal(GroupWorkflow.park)
        await all_of(group.task for group in open_groups)

    def _check_enough(self) -> None:
        needed = run_limits.min_groups(self.config)
        if self.num_scored < needed:
            reasons = Counter(group.reason for group in self.ended if group.dropped_by)
            common = "; ".join(f"{count} x {text}" for text, count in reasons.most_common(3))
            raise _too_many_losses(
                f"{self.num_scored} of {self.config.num_tasks} groups are scored, {needed} needed "
                f"(iteration.min_group_share), and no spare task is left: {common}"
            )

    def _drop(self, groups: Sequence[OpenGroup]) -> None:
        for group in groups:
            group.is_dropped = True
            group.task.cancel()

    async def _results(self) -> list[GroupResult]:
        """Give what every group came to, when all have ended."""
        found = await all_of(group.task for group in self._begun)
        return [
            result or self.fan_out.cancelled(group.ref)
            for group, result in zip(self._begun, found, strict=True)
        ]

    async def _watch(self) -> None:
        """Say so when no group has ended for long."""
        while True:
            num_ended = len(self.ended)
            await workflow.sleep(self.config.watchdog_seconds)
            self.is_silent = len(self.ended) == num_ended
            self.on_change()


def _too_many_losses(reason: str) -> ApplicationError:
    return ApplicationError(reason, type="TooManyLosses", non_retryable=True)
