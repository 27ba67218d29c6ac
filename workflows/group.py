"""One group: the G episodes of one task, scored together."""

from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import TypedSearchAttributes
from temporalio.exceptions import ChildWorkflowError

from loopwright.contracts import activities, ids, queues
from loopwright.contracts.episodes import EpisodeInput, EpisodeResult
from loopwright.contracts.groups import (
    GroupInput,
    GroupResult,
    LoadParkedRequest,
    ParkedRef,
    ParkGroupRequest,
    ScoreGroupRequest,
)
from loopwright.contracts.turns import StopReason
from loopwright.core import priorities, replacement, seeds, summaries
from loopwright.core.admission import Admission

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows import search_attributes
    from loopwright.workflows.causes import (
        all_of,
        end_of,
        failure_of,
        is_cancellation,
        raise_if_cancelled,
        until_cancelled,
    )
    from loopwright.workflows.episode import EpisodeWorkflow
    from loopwright.workflows.group_steering import GroupSteering, park_episode
    from loopwright.workflows.options import call, temporal_priority


@workflow.defn(name=ids.GROUP)
class GroupWorkflow(GroupSteering):
    """Durable life of one group, ``.../task/T``.

    The unit of baseline and of admission. An episode that fails takes none of its siblings with
    it: a fresh one, with the next free index, replaces it while the budget lasts, and the score
    says whether what the group has then is enough. One that is cancelled is not replaced; one that
    is requeued goes on from its newest committed turn, in a run of its own.

    A group that is parked ends at once, with the outcomes it has and the turns that the others
    reached; started again under its id, it goes on with those. One that is cancelled ends
    unscored, with the outcomes of its episodes.
    """

    @workflow.init
    def __init__(self, group: GroupInput) -> None:
        self._group = group
        self._num_begun = 0
        self._ended = {}
        self._open = {}
        self._parked: dict[int, EpisodeResult] = {}
        self._is_parking = False
        self._show()

    @workflow.run
    async def run(self, group: GroupInput) -> GroupResult:
        """Run the episodes, then score them."""
        with until_cancelled():
            await self._load_parked()
            await self._run_episodes()
            raise_if_cancelled()
            return await (self._score() if self._is_whole() else self._park())
        return self._cancelled()

    async def _load_parked(self) -> None:
        """Go on where the group stood when it was parked, if it was."""
        now = self._group
        if now.parked is None:
            return
        found = await call(
            activities.load_parked,
            LoadParkedRequest(parked=now.parked),
            summary=f"go on with {now.episode.task.task_id}",
        )
        episode = found.group.episode.model_copy(update={"priority": now.episode.priority})
        self._group = found.group.model_copy(
            update={"iteration": now.iteration, "episode": episode}
        )
        self._num_begun = len(found.episodes)
        for each in found.episodes:
            self._keep(each)

    async def _run_episodes(self) -> None:
        await all_of(self._run_member(index) for index in (*self._parked, *self._due()))

    def _due(self) -> Sequence[int]:
        """Take the indices of the episodes that are to begin now: all at first, then fresh ones."""
        if self._is_parking or workflow.cancellation_reason() is not None:
            return ()
        due = range(self._num_begun, self._num_wanted())
        self._num_begun = max(self._num_begun, due.stop)
        return due

    def _num_wanted(self) -> int:
        return replacement.num_wanted(
            self._ended.values(),
            size=self._group.size,
            max_replacements=self._group.max_replacements,
        )

    async def _run_member(self, index: int) -> None:
        """Run an episode to its end, and those that its failure calls for."""
        while not self._is_settled(index):
            self._keep(await self._run_episode(index))
        await all_of(self._run_member(fresh) for fresh in self._due())

    def _is_settled(self, index: int) -> bool:
        """Tell whether an episode is not to run now; one that was parked alone goes on at once."""
        return index in self._ended or (self._is_parking and index in self._parked)

    async def _run_episode(self, index: int) -> EpisodeResult:
        episode = self._episode(index)
        try:
            handle = await workflow.start_child_workflow(
                EpisodeWorkflow.run,
                episode,
                id=ids.episode_path(workflow.info().workflow_id, index),
                task_queue=queues.EPISODE,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                search_attributes=self._search_attributes(),
                static_summary=self._summary(episode),
                priority=temporal_priority(episode.priority),
            )
            self._open[index] = handle
            self._show()
            if self._is_parking:
                await park_episode(handle)
            return await end_of(handle)
        except ChildWorkflowError as error:
            if is_cancellation(error) and workflow.cancellation_reason() is not None:
                raise
            return _lost_to(error, index)
        finally:
            self._open.pop(index, None)

    def _episode(self, index: int) -> EpisodeInput:
        common, parked = self._group.episode, self._parked.get(index)
        is_replacement = index >= self._group.size
        priority = priorities.hastened(common.priority) if is_replacement else common.priority
        return common.model_copy(
            update={
                "prefix": ids.episode_path(common.prefix, index),
                "index": index,
                "seed": seeds.derive(common.seed, index),
                "priority": priority,
                "resume_from": parked.head if parked else None,
            }
        )

    def _keep(self, episode: EpisodeResult) -> None:
        """Remember how an episode ended, or how far it came."""
        self._remember(episode)
        self._show()

    def _remember(self, episode: EpisodeResult) -> None:
        known = self._parked.pop(episode.index, None)
        if episode.status != "parked":
            self._ended[episode.index] = episode
        elif known is not None and known.head == episode.head:
            self._parked[episode.index] = known
        else:
            self._parked[episode.index] = episode

    def _is_whole(self) -> bool:
        """Tell whether every episode that the group is to have has ended."""
        return len(self._ended) >= self._num_wanted()

    async def _score(self) -> GroupResult:
        task = self._group.episode.task
        episodes = [self._ended[index] for index in range(self._num_begun)]
        return await call(
            activities.score_group,
            ScoreGroupRequest(
                prefix=self._group.episode.prefix,
                task=task,
                advantage=self._group.advantage,
                episodes=tuple(episodes),
                size=self._group.size,
            ),
            summary=f"score {len(episodes)} episodes of {task.task_id}",
            priority=self._group.episode.priority,
        )

    async def _park(self) -> GroupResult:
        """Store where the group stands."""
        task, known = self._group.episode.task, self._ended | self._parked
        episodes = [known[index] for index in range(self._num_begun)]
        artifact = await call(
            activities.park_group,
            ParkGroupRequest(group=self._group, episodes=tuple(episodes)),
            summary=f"park {task.task_id} with {len(self._parked)} episodes under way",
            priority=self._group.episode.priority,
        )
        result = summaries.of_group(
            task, episodes, size=self._group.size, admission=Admission("the group is parked")
        )
        parked = ParkedRef(
            task=task,
            group_id=workflow.info().workflow_id,
            artifact=artifact,
            oldest_version=result.oldest_version,
            num_episodes=result.num_episodes,
        )
        return result.model_copy(update={"parked": parked})

    def _cancelled(self) -> GroupResult:
        size = self._group.size
        indices = range(max(self._num_begun, size))
        episodes = [self._ended.get(index) or _cancelled(index) for index in indices]
        admission = Admission("the group was cancelled")
        return summaries.of_group(
            self._group.episode.task, episodes, size=size, admission=admission
        )

    def _search_attributes(self) -> TypedSearchAttributes:
        return search_attributes.at_start(
            loop_id=self._group.loop_id,
            iteration=self._group.iteration,
            policy_version=self._group.episode.policy.version,
            task_id=self._group.episode.task.task_id,
        )

    def _summary(self, episode: EpisodeInput) -> str:
        return f"{episode.kind} of {episode.task.task_id}, policy version {episode.policy.version}"


def _cancelled(index: int) -> EpisodeResult:
    return EpisodeResult(index=index, status="cancelled", stop_reason=StopReason.CANCELLED)


def _lost_to(error: ChildWorkflowError, index: int) -> EpisodeResult:
    """Record an episode whose workflow was cancelled, terminated or broken from outside."""
    was_cancelled = is_cancellation(error)
    return EpisodeResult(
        index=index,
        status="cancelled" if was_cancelled else "failed",
        stop_reason=StopReason.CANCELLED if was_cancelled else StopReason.FAILED,
        failure=failure_of(error),
    )
