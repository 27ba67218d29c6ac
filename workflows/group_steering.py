"""How a group is operated while it runs: its updates and signals."""

from collections import Counter
from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.workflow import HandlerUnfinishedPolicy

from loopwright.contracts import ids
from loopwright.contracts.episodes import EpisodeResult
from loopwright.contracts.failures import UserError
from loopwright.contracts.groups import EpisodeRequest, GroupInput
from loopwright.contracts.progress import GroupProgress, Trouble
from loopwright.core import details

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import all_of
    from loopwright.workflows.episode import EpisodeWorkflow

EpisodeHandle = workflow.ChildWorkflowHandle[EpisodeWorkflow, EpisodeResult]


class GroupSteering:
    """The handlers of a group; an episode that is not under way is refused."""

    _num_begun: int
    """Episodes begun, in this run or before it was parked; the next free index."""
    _ended: dict[int, EpisodeResult]
    _group: GroupInput
    _open: dict[int, EpisodeHandle]
    _parked: dict[int, EpisodeResult]
    _is_parking: bool

    @workflow.query
    def progress(self) -> GroupProgress:
        """Give the live state."""
        path = workflow.info().workflow_id
        newest = [each for each in self._ended.values() if each.failure is not None]
        return GroupProgress(
            task_id=self._group.episode.task.task_id,
            episodes={
                "under way": len(self._open),
                **Counter(each.status for each in self._ended.values()),
                "parked": len(self._parked.keys() - self._open.keys()),
            },
            troubles=tuple(
                Trouble(
                    workflow_id=ids.episode_path(path, each.index),
                    reason=each.failure.message if each.failure else "",
                )
                for each in newest[-details.MAX_TROUBLES :]
            ),
        )

    def _show(self) -> None:
        """Tell in the Web UI what the group is at."""
        namespace = workflow.info().namespace
        workflow.set_current_details(details.of_group(self.progress(), namespace=namespace))

    @workflow.update
    async def cancel_episode(self, request: EpisodeRequest) -> None:
        """End an episode without a reward; no other replaces it."""
        self._open[request.index].cancel()

    @cancel_episode.validator
    def _check_cancel_episode(self, request: EpisodeRequest) -> None:
        self._refuse_unless_open(request.index)

    @workflow.update(unfinished_policy=HandlerUnfinishedPolicy.ABANDON)
    async def requeue_episode(self, request: EpisodeRequest) -> None:
        """Take an episode from its worker; it goes on from its newest committed turn.

        One that is being graded ends as it would.
        """
        await park_episode(self._open[request.index])

    @requeue_episode.validator
    def _check_requeue_episode(self, request: EpisodeRequest) -> None:
        self._refuse_unless_open(request.index)
        if self._is_parking:
            raise UserError("its group is being parked, and goes on in the next iteration")

    @workflow.signal(unfinished_policy=HandlerUnfinishedPolicy.ABANDON)
    async def park(self) -> None:
        """End at once, for a later iteration to go on with; a whole group is scored instead."""
        self._is_parking = True
        await all_of(park_episode(handle) for handle in list(self._open.values()))

    def _refuse_unless_open(self, index: int) -> None:
        if index in self._open:
            return
        if index in self._ended:
            raise UserError(f"it has ended: {self._ended[index].status}")
        if index >= self._num_begun:
            raise UserError(f"there is no such episode; its group has begun {self._num_begun}")
        raise UserError("it is between two runs; ask again")


async def park_episode(handle: EpisodeHandle) -> None:
    """Ask an episode to park; one that has just ended needs no asking."""
    with suppress(ApplicationError):
        await handle.signal(EpisodeWorkflow.park)
