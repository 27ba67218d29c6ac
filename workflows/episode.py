"""One episode: a task attempted once, from the first turn to the reward."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, RetryState

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
    failed episode is a result, never a failed workflow. Cancelling it ends it as cancelled;
    parking it ends it at a turn from which another goes on.
    """

    @workflow.init
    def __init__(self, episode: EpisodeInput) -> None:
        self._episode = episode
        self._head = episode.resume_from or TurnHead(num_turns=0, digest="")
        self._taken: TakeTurnsResult | None = None
        """Where the newest activity of this run left it."""
        self._is_parking = False

    @workflow.run
    async def run(self, episode: EpisodeInput) -> EpisodeResult:
        """Play and grade the episode."""
        try:
            turns = await self._take_turns()
            if turns is None:
                result = self._parked()
            else:
                graded = await self._grade(turns.stop_reason or StopReason.COMPLETED)
                result = self._result(turns, graded)
        except ActivityError as error:
            if is_cancellation(error):
                raise
            result = self._failed(error)
        self._show(result)
        return result

    async def _take_turns(self) -> TakeTurnsResult | None:
        """Take turns, an activity a chunk, until the episode stops; None where it is parked."""
        for _ in range(self._episode.budgets.max_turns + 1):
            taken = None if self._is_parking else await self._take_chunk()
            if taken is None:
                return None
            self._taken, self._head = taken, taken.head
            if taken.stop_reason is not None:
                return taken
        raise AssertionError("an episode stops at its turn budget")

    async def _take_chunk(self) -> TakeTurnsResult | None:
        """Take the turns of one activity, which parking cuts short; None where it told of none.

        Turns that it committed and did not tell of are found where the episode goes on.
        """
        num_turns, most = self._head.num_turns, self._episode.budgets.max_turns
        workflow.set_current_details(f"**taking turns**, {num_turns} of at most {most} committed")
        chunk = asyncio.create_task(
            call(
                activities.take_turns,
                TakeTurnsRequest(
                    episode=self._episode,
                    head=self._head,
                    max_turns=self._episode.budgets.turns_per_activity,
                ),
                summary=f"turns from {self._head.num_turns}",
                profile=self._episode.profile,
                priority=self._episode.priority,
            )
        )
        try:
            await workflow.wait_condition(lambda: chunk.done() or self._is_parking)
            chunk.cancel()
            await workflow.wait_condition(chunk.done)
            return chunk.result()
        except asyncio.CancelledError:
            chunk.cancel()
            # The request to cancel it goes out in the next step; its end is not waited for.
            await asyncio.sleep(0)
            raise
        except ActivityError as error:
            if self._is_parking and _is_cut_short(error):
                return None
            raise

    async def _grade(self, stop_reason: StopReason) -> GradeEpisodeResult:
        workflow.set_current_details(f"**grading** after {self._head.num_turns} turns")
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

    def _parked(self) -> EpisodeResult:
        taken = self._taken
        return EpisodeResult(
            index=self._episode.index,
            status="parked",
            stop_reason=StopReason.PARKED,
            num_turns=self._head.num_turns,
            num_completion_tokens=taken.num_completion_tokens if taken else 0,
            policy_span=taken.policy_span if taken else None,
            head=self._head,
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
        """Set what is known only now: search attributes, and how it ended for the Web UI."""
        workflow.set_current_details(
            f"**{result.status}** after {result.num_turns} turns: {result.stop_reason}"
        )
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

    @workflow.signal
    def park(self) -> None:
        """End at the turn under way; an episode that is being graded ends as it would."""
        self._is_parking = True


def _is_cut_short(error: ActivityError) -> bool:
    """Tell whether an activity has no further attempt because it was cancelled."""
    return is_cancellation(error) or error.retry_state is RetryState.CANCEL_REQUESTED
