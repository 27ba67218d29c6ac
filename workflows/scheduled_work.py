"""One firing of a schedule: ask a loop for work, and wait until it is done."""

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from loopwright.contracts import activities, ids
from loopwright.contracts.evaluations import EvaluateRequest
from loopwright.contracts.iterations import RunIterationsRequest
from loopwright.contracts.schedules import (
    AskLoopRequest,
    AskLoopResult,
    AwaitLoopRequest,
    AwaitLoopResult,
    ScheduledEvaluation,
    ScheduledWorkInput,
    ScheduledWorkResult,
)

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import failure_of, is_cancellation
    from loopwright.workflows.continuation import Continuation, continue_as_new
    from loopwright.workflows.options import call


@workflow.defn(name=ids.SCHEDULED_WORK)
class ScheduledWorkWorkflow:
    """Durable life of one firing, ``loop/L/schedule/NAME-TIME``.

    It is open for as long as the work it asked for is not done, and that is how the schedule knows
    that firings overlap. The loop does what it was asked in its own order, so no two iterations
    race, whatever the schedules. A firing fails when the loop does not exist, refuses, or ends
    before; one that is cancelled waits no longer, and the loop goes on.
    """

    @workflow.run
    async def run(self, firing: ScheduledWorkInput) -> ScheduledWorkResult:
        """Ask and wait."""
        self._firing = firing
        self._continuation = Continuation()
        try:
            asked = firing.asked or await self._ask()
            self._show(asked)
            answer = await self._await(asked)
        except ActivityError as error:
            if is_cancellation(error):
                raise
            raise _failed(error) from error
        return ScheduledWorkResult(
            loop_id=firing.loop_id,
            last_iteration=asked.last_iteration,
            iterations=answer.iterations,
            evaluation=answer.evaluation,
        )

    async def _ask(self) -> AskLoopResult:
        return await call(
            activities.ask_loop,
            AskLoopRequest(
                loop_id=self._firing.loop_id,
                request_id=workflow.info().first_execution_run_id,
                ask=self._request(),
                schedule=self._firing.schedule,
            ),
            summary=f"ask loop {self._firing.loop_id}",
        )

    async def _await(self, asked: AskLoopResult) -> AwaitLoopResult:
        """Wait in activities of an hour each; a long wait continues as new."""
        while True:
            answer = await call(
                activities.await_loop,
                AwaitLoopRequest(loop_id=self._firing.loop_id, asked=asked),
                summary=f"wait for loop {self._firing.loop_id}",
            )
            if answer.is_done:
                return answer
            if self._continuation.is_due():
                continue_as_new(self._firing.model_copy(update={"asked": asked}))

    def _request(self) -> RunIterationsRequest | EvaluateRequest:
        work = self._firing.work
        if not isinstance(work, ScheduledEvaluation):
            return RunIterationsRequest(num_iterations=work.num_iterations)
        return EvaluateRequest(
            name=self._evaluation_name(), num_tasks=work.num_tasks, samples=work.samples
        )

    def _evaluation_name(self) -> str:
        """Name an evaluation by schedule and time; the end keeps firings of one second apart."""
        info = workflow.info()
        end = info.first_execution_run_id[-4:]
        return f"{self._firing.schedule}-{info.workflow_start_time:%Y%m%d-%H%M%S}-{end}"

    def _show(self, asked: AskLoopResult) -> None:
        if isinstance(asked.ask, EvaluateRequest):
            work = f"evaluation {asked.ask.name}"
        else:
            work = f"{asked.ask.num_iterations} iterations, up to {asked.last_iteration}"
        workflow.set_current_details(
            f"asked loop {self._firing.loop_id} for **{work}**\n\n"
            f"firings before this one that did not come about: {asked.num_skipped} skipped, "
            f"{asked.num_missed} missed"
        )


def _failed(error: ActivityError) -> ApplicationError:
    """Fail with the reason itself, which the schedule notes when it pauses."""
    failure = failure_of(error)
    reason = failure.message.removeprefix(f"{failure.type}: ")
    return ApplicationError(reason, type=failure.type, non_retryable=True)
