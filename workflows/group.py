"""One group: the G episodes of one task, scored together."""

from temporalio import workflow
from temporalio.common import TypedSearchAttributes
from temporalio.exceptions import ChildWorkflowError

from loopwright.contracts import activities, ids, queues
from loopwright.contracts.episodes import EpisodeInput, EpisodeResult
from loopwright.contracts.groups import GroupInput, GroupResult, ScoreGroupRequest
from loopwright.contracts.turns import StopReason
from loopwright.core import seeds, summaries

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows import search_attributes
    from loopwright.workflows.causes import (
        all_of,
        failure_of,
        is_cancellation,
        until_cancelled,
    )
    from loopwright.workflows.episode import EpisodeWorkflow
    from loopwright.workflows.options import call, temporal_priority


@workflow.defn(name=ids.GROUP)
class GroupWorkflow:
    """Durable life of one group, ``.../task/T``.

    The unit of baseline and of admission. An episode that fails takes none of its siblings with
    it; the group ends with what it has, and the score says whether that is enough. One that is
    cancelled ends unscored, with the outcomes of its episodes.
    """

    @workflow.run
    async def run(self, group: GroupInput) -> GroupResult:
        """Run the episodes, then score them."""
        self._group = group
        episodes = await self._run_episodes()
        if workflow.cancellation_reason() is None:
            with until_cancelled():
                return await self._score(episodes)
        reason = "the group was cancelled"
        return summaries.of_group(group.episode.task, episodes, reason=reason, manifest=None)

    async def _run_episodes(self) -> list[EpisodeResult]:
        found = await all_of(self._run_episode(i) for i in range(self._group.size))
        return [episode or _cancelled(index) for index, episode in enumerate(found)]

    async def _run_episode(self, index: int) -> EpisodeResult:
        common = self._group.episode
        episode = common.model_copy(
            update={
                "prefix": ids.episode_path(common.prefix, index),
                "index": index,
                "seed": seeds.derive(common.seed, index),
            }
        )
        try:
            return await workflow.execute_child_workflow(
                EpisodeWorkflow.run,
                episode,
                id=ids.episode_path(workflow.info().workflow_id, index),
                task_queue=queues.EPISODE,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                search_attributes=self._search_attributes(),
                static_summary=self._summary(episode),
                priority=temporal_priority(episode.priority),
            )
        except ChildWorkflowError as error:
            if is_cancellation(error) and workflow.cancellation_reason() is not None:
                raise
            return _lost_to(error, index)

    async def _score(self, episodes: list[EpisodeResult]) -> GroupResult:
        task = self._group.episode.task
        return await call(
            activities.score_group,
            ScoreGroupRequest(
                prefix=self._group.episode.prefix,
                task=task,
                advantage=self._group.advantage,
                episodes=tuple(episodes),
            ),
            summary=f"score {len(episodes)} episodes of {task.task_id}",
            priority=self._group.episode.priority,
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
