"""One episode: a task attempted once, from the first turn to the reward."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from loopwright.contracts import activities
from loopwright.contracts.episodes import (
    EpisodeInput,
    EpisodeResult,
    GradeEpisodeRequest,
    GradeEpisodeResult,
    TakeTurnsRequest,
    TakeTurnsResult,
)
from loopwright.contracts.ids import EPISODE
from loopwright.contracts.turns import StopReason, TurnHead

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows import search_attributes
    from loopwright.workflows.causes import failure_of, is_cancellation
    from loopwright.workflows.options import call


@workflow.defn(name=EPISODE)
class EpisodeWorkflow:
    """Durable life of one episode, ``.../task/T/episode/I``.

    Every turn is in the store before the next begins, so a repeated activity goes on where the
    lost one stood. Ends graded, truncated (by a limit of ours; graded all the same) or failed; a
    failed episode is a result, never a failed workflow. Cancelling it ends it as cancelled.
    """

    @workflow.run
    async def run(self, episode: EpisodeInput) -> EpisodeResult:
        """Play and grade the episode."""
        self._episode = episode
        self._head = episode.resume_from or TurnHead(num_turns=0, digest="")
        try:
            turns = await self._take_turns()
            graded = await self._grade(turns.stop_reason or StopReason.COMPLETED)
            result = self._result(turns, graded)
        except ActivityError as error:
            if is_cancellation(error):
                raise
            result = self._failed(error)
        self._show(result)
        return result

    async def _take_turns(self) -> TakeTurnsResult:
        """Take turns, an activity a chunk, until the episode stops."""
        chunk = self._episode.budgets.turns_per_activity
        for _ in range(self._episode.budgets.max_turns + 1):
            taken = await call(
                activities.take_turns,
                TakeTurnsRequest(episode=self._episode, head=self._head, max_turns=chunk),
                summary=f"turns from {self._head.num_turns}",
                profile=self._episode.profile,
                priority=self._episode.priority,
            )
            self._head = taken.head
            if taken.stop_reason is not None:
                return taken
        raise AssertionError("an episode stops at its turn budget")

    async def _grade(self, stop_reason: StopReason) -> GradeEpisodeResult:
        return await call(
            activities.grade_episode,
            GradeEpisodeRequest(episode=self._episode, head=self._head, stop_reason=stop_reason),
            summary=f"grade after {self._head.num_turns} turns: {stop_reason}",
            profile=self._episode.profile,
            priority=self._episode.priority,
        )

    def _result(self, turns: TakeTurnsResult, graded: GradeEpisodeResult) -> EpisodeResult:
        stop_reason = turns.stop_reason or StopReason.COMPLETED
        return EpisodeResult(
            index=self._episode.index,
            status="truncated" if stop_reason.is_truncated else "graded",
            stop_reason=stop_reason,
            verdict=graded.grade.verdict,
            reward=graded.grade.reward,
            components=graded.grade.components,
            num_turns=self._head.num_turns,
            num_completion_tokens=turns.num_completion_tokens,
            first_answer_passed=graded.first_answer_passed,
            policy_span=turns.policy_span,
            trajectory=graded.trajectory,
        )

    def _failed(self, error: ActivityError) -> EpisodeResult:
        workflow.logger.warning("episode failed: %s", error.cause)
        return EpisodeResult(
            index=self._episode.index,
            status="failed",
            stop_reason=StopReason.FAILED,
            num_turns=self._head.num_turns,
            failure=failure_of(error),
        )

    def _show(self, result: EpisodeResult) -> None:
        """Set the search attributes that are known only now."""
        updates = [
            search_attributes.STOP_REASON.value_set(str(result.stop_reason)),
            search_attributes.EPISODE_STATUS.value_set(result.status),
        ]
        if result.reward is not None:
            workflow.upsert_search_attributes(
                [*updates, search_attributes.REWARD.value_set(result.reward)]
            )
        else:
            workflow.upsert_search_attributes(updates)
