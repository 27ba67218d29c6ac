"""The loop: iterations one after another, operated by updates."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError

from loopwright.contracts import activities, ids
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.evaluations import EvaluateRequest, EvaluationResult
from loopwright.contracts.failures import LoopError, UserError
from loopwright.contracts.groups import DropCounts
from loopwright.contracts.iterations import (
    Collected,
    IterationResult,
    LoopInput,
    LoopPhase,
    LoopProgress,
    LoopResult,
    LoopState,
    LoopStatus,
    RunIterationsRequest,
    SetRequest,
    StopRequest,
)
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.contracts.training import ImportPolicyRequest
from loopwright.core import loop_bounds, staleness, steering, stopping
from loopwright.core.loop_status import loop_status

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows import search_attributes
    from loopwright.workflows.causes import failure_of, is_cancellation, raise_if_cancelled
    from loopwright.workflows.engine_lease import EngineLease, is_history_full
    from loopwright.workflows.iteration import COLLECTED
    from loopwright.workflows.loop_children import (
        IterationHandle,
        run_evaluation,
        start_iteration,
    )
    from loopwright.workflows.options import call
    from loopwright.workflows.pipeline import Pipeline

Result = TypeVar("Result")


@workflow.defn(name=ids.LOOP)
class LoopWorkflow:
    """Durable life of one loop, ``loop/L``.

    An entity: it runs the iterations it was asked for, then ends, or idles when its number is
    left open. Operated by the updates ``run_iterations``, ``pause``, ``resume`` and ``stop``;
    read by the query ``progress``. It holds the lease of its engine only while it works. A stop
    ends it as completed, with the outcome ``stopped``.
    """

    @workflow.init
    def __init__(self, loop: LoopInput) -> None:
        self._loop = loop
        self._config = loop.config
        self._state = loop.state or LoopState(
            uid=_uid(workflow.info().first_execution_run_id),
            num_requested=loop.config.num_iterations,
        )
        self._lease = EngineLease(
            loop.config.engines[0].name,
            loop.config.profile,
            # A run is continued only after the engine's worker has answered.
            is_known=loop.state is not None,
        )
        self._phase: LoopPhase = "starting"
        self._detail = ""
        self._stop: StopRequest | None = None
        self._is_ending = False
        self._has_failed = False
        self._listed_status = search_attributes.listed_status(workflow.info())
        self._num_this_run = 0
        self._running: asyncio.Task[Any] | None = None
        """What a stop cancels."""
        self._pipeline: Pipeline | None = None

    @workflow.run
    async def run(self, loop: LoopInput) -> LoopResult:
        """Run the iterations asked for, between an evaluation before and one after."""
        async with self._lease:
            await self._import_policy()
            await self._evaluate_base()
            while not self._is_over():
                await self._wait_for_work()
                await self._evaluate_asked()
                await self._run_iterations()
                await self._continue_as_new_if_long()
            await self._evaluate_final()
        self._show("ended")
        return self._result()

    async def _import_policy(self) -> None:
        """Make version 0 from the model the configuration names."""
        if self._state.checkpoint is not None:
            return
        policy = PolicyVersion(policy_id=f"{self._loop.loop_id}-{self._state.uid}", version=0)
        model = self._config.policy.model
        imported = call(
            activities.import_policy,
            ImportPolicyRequest(model=model, policy=policy, prefix=self._prefix()),
            summary=f"import {model}",
            profile=self._config.profile,
        )
        checkpoint = await self._interruptible(f"import of {model}", imported)
        self._update_state(checkpoint=checkpoint)

    async def _evaluate_base(self) -> None:
        wants = self._config.evaluation.at_start and not self._is_stopped()
        if wants and self._state.base_evaluation is None:
            self._update_state(
                base_evaluation=await self._evaluate(EvaluateRequest(name="base"), of="base policy")
            )

    async def _wait_for_work(self) -> None:
        """Return when there is something to run or the loop is to end."""
        while not (self._has_work() or self._has_evaluation() or self._is_over()):
            await self._lease.release()
            await self._wait_while(is_paused=self._state.is_paused)

    async def _wait_while(self, *, is_paused: bool) -> None:
        """Return when there is work, the loop is over, or a pause begins or ends."""
        self._show("paused" if is_paused else "idle")
        await workflow.wait_condition(
            lambda: (
                self._has_work()
                or self._has_evaluation()
                or self._is_over()
                or self._state.is_paused is not is_paused
            )
        )

    async def _run_iterations(self) -> None:
        """Run iterations, overlapping as the staleness lets them, until none may follow."""
        if not (self._may_start(0) and await self._acquire_engine() and self._may_start(0)):
            return
        self._pipeline = Pipeline(
            start=self._start_iteration, may_start=self._may_start, finish=self._finish_iteration
        )
        await self._interruptible(None, self._pipeline.run())

    def _may_start(self, num_open: int) -> bool:
        """Tell whether an iteration may begin behind so many unfinished ones."""
        return (
            self._has_work(num_open)
            and not self._has_reached_target()
            and not self._is_run_long(num_open)
            and staleness.may_collect(
                num_open=num_open, max_staleness=self._config.iteration.max_staleness
            )
        )

    async def _start_iteration(self, num_open: int) -> IterationHandle:
        self._show_iterations(num_open + 1)
        state = self._state
        self._update_state(parked=())
        return await start_iteration(self._loop, state, num_open=num_open)

    async def _finish_iteration(self, result: IterationResult) -> CheckpointRef:
        self._record(result)
        raise_if_cancelled()
        self._refuse_foreign_stop(f"iteration {result.index}", result.outcome)
        await self._evaluate_if_due()
        await self._evaluate_asked()
        self._show_iterations(self._pipeline.num_open if self._pipeline else 0)
        return self._checkpoint()

    def _show_iterations(self, num_open: int) -> None:
        if num_open:
            others = f", {num_open - 1} more behind it" if num_open > 1 else ""
            self._show("iterating", f"{self._oldest_iteration()}{others}")

    def _oldest_iteration(self) -> str:
        return f"iteration {self._state.num_done + 1}"

    async def _evaluate_if_due(self) -> None:
        done = self._state.num_done
        if stopping.evaluation_is_due(done, self._config.evaluation.every):
            of = f"policy after iteration {done}"
            found = await self._evaluate(EvaluateRequest(name=ids.evaluation_name(done)), of=of)
            if found is not None:
                older = self._state.evaluations
                # Only the newest, which may be of the final policy, carries its breakdown.
                kept = (*(each.model_copy(update={"report": None}) for each in older), found)
                self._update_state(evaluations=kept[-loop_bounds.KEPT_EVALUATIONS :])

    async def _evaluate_asked(self) -> None:
        """Make the evaluations that were asked for, in order."""
        while self._has_evaluation() and not self._is_stopped():
            asked, *others = self._state.asked_evaluations
            of = f"evaluation {asked.name}: policy after iteration {self._state.num_done}"
            if not await self._acquire_engine():
                return
            self._update_state(asked_evaluations=tuple(others))
            await self._evaluate(asked, of=of)

    async def _continue_as_new_if_long(self) -> None:
        if self._is_run_long() and not self._is_over():
            await self._continue_as_new()

    def _is_run_long(self, num_open: int = 0) -> bool:
        """Tell whether this run is to be continued as new before another iteration."""
        num_begun = self._num_this_run + num_open
        return is_history_full() or num_begun >= loop_bounds.ITERATIONS_PER_RUN

    async def _continue_as_new(self) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        self._lease.hand_over()
        workflow.continue_as_new(self._loop.model_copy(update={"state": self._state}))

    async def _evaluate_final(self) -> None:
        self._is_ending = True
        wants = self._config.evaluation.at_end and self._stop is None
        if wants and self._state.final_evaluation is None:
            known = (self._state.base_evaluation, *self._state.evaluations)
            found = stopping.evaluation_after(self._state.num_done, known)
            found = found or await self._evaluate(EvaluateRequest(name="final"), of="final policy")
            self._update_state(final_evaluation=found)

    async def _evaluate(self, asked: EvaluateRequest, *, of: str) -> EvaluationResult | None:
        """Evaluate the present version; None when the loop was stopped meanwhile."""
        if not await self._acquire_engine():
            return None
        self._show("evaluating", f"{of}, version {self._checkpoint().policy.version}")
        name = f"evaluation {asked.name}"
        work = run_evaluation(self._loop, self._state, asked)
        result = await self._interruptible(name, work)
        if result is None:
            return None
        self._count(result.num_episodes, result.num_lost)
        self._refuse_foreign_stop(name, result.outcome)
        return result if result.outcome == "completed" else None

    async def _acquire_engine(self) -> bool:
        """Hold the engine's lease with the present version served; False when stopped."""
        if not self._lease.is_held:
            self._show("waiting_for_engine")
            acquired = self._lease.acquire(
                self._checkpoint(), on_wait=self._show_wait, is_given_up=self._is_stopped
            )
            await self._interruptible("lease of the engine", acquired)
            if not self._lease.is_held and not self._is_stopped():
                await self._continue_as_new()
        return self._lease.is_held and not self._is_stopped()

    def _show_wait(self, detail: str) -> None:
        self._show("waiting_for_engine", detail)

    def _record(self, result: IterationResult) -> None:
        self._num_this_run += 1
        row = result.model_copy(update={"checkpoint": None, "report": None})
        self._update_state(
            checkpoint=result.checkpoint,
            num_done=result.index,
            drops=DropCounts(
                num_skipped_tasks=self._state.drops.num_skipped_tasks + result.num_skipped_tasks,
                num_infra_drops_in_a_row=result.num_infra_drops_in_a_row,
            ),
            results=(*self._state.results, row)[-loop_bounds.KEPT_RESULTS :],
        )
        self._count(result.num_episodes, result.num_lost)

    def _count(self, num_episodes: int, num_lost: int) -> None:
        self._update_state(
            num_episodes=self._state.num_episodes + num_episodes,
            num_lost=self._state.num_lost + num_lost,
        )

    async def _interruptible(
        self, name: str | None, work: Coroutine[Any, Any, Result]
    ) -> Result | None:
        """Await activities or children; None when an update stopped them. Failure ends the loop.

        Without a name, the work is that of iterations.
        """
        task: asyncio.Task[Result] = asyncio.create_task(work)
        outer, self._running = self._running, self._running or task
        try:
            result = await task
            # A child that was cancelled with this loop tells what it did, like a stopped one.
            raise_if_cancelled()
            return result
        except (ActivityError, ChildWorkflowError, LoopError, asyncio.CancelledError) as error:
            if is_cancellation(error):
                if self._is_stopped() and workflow.cancellation_reason() is None:
                    return None
                raise
            raise self._failed(name or self._oldest_iteration(), error) from error
        finally:
            self._running = outer

    def _failed(self, name: str, error: BaseException) -> ApplicationError:
        failure = failure_of(error)
        self._has_failed = True
        return ApplicationError(
            f"{name} failed: {failure.message}", type=failure.type, non_retryable=True
        )

    def _refuse_foreign_stop(self, name: str, outcome: str) -> None:
        """End the loop when somebody else cancelled its child.

        The engine may serve anything then, so the next iteration cannot simply follow.
        """
        if outcome == "stopped" and not self._is_stopped():
            self._has_failed = True
            raise ApplicationError(
                f"{name} was cancelled by another hand than the loop's own; start the loop anew",
                type="Cancelled",
                non_retryable=True,
            )

    def _has_work(self, num_open: int = 0) -> bool:
        if self._state.is_paused or self._is_stopped():
            return False
        requested = self._state.num_requested
        return requested is not None and self._state.num_done + num_open < requested

    def _is_over(self) -> bool:
        """Tell whether nothing will follow: no iteration, and no evaluation that was asked for."""
        if self._is_stopped():
            return True
        if self._state.is_paused or self._state.asked_evaluations:
            return False
        return self._has_reached_target() or (
            self._config.num_iterations is not None and not self._has_work()
        )

    def _has_reached_target(self) -> bool:
        rates = [result.first_pass_rate for result in self._state.results]
        return stopping.target_is_reached(rates, self._config.target_pass_rate)

    def _has_evaluation(self) -> bool:
        return bool(self._state.asked_evaluations) and not self._state.is_paused

    def _is_stopped(self) -> bool:
        return self._stop is not None

    def _checkpoint(self) -> CheckpointRef:
        assert self._state.checkpoint is not None
        return self._state.checkpoint

    def _prefix(self) -> str:
        return ids.loop_prefix(self._loop.loop_id, self._state.uid)

    def _update_state(self, **changes: object) -> None:
        self._state = self._state.model_copy(update=changes)

    def _status(self) -> LoopStatus:
        if self._has_failed:
            return "failed"
        if workflow.cancellation_reason() is not None:
            return "cancelled"
        return loop_status(
            self._phase, is_paused=self._state.is_paused, is_stopped=self._is_stopped()
        )

    def _list_status(self) -> None:
        """Let lists of loops show what Temporal's own status does not tell."""
        status = self._status()
        if status not in (self._listed_status, "completed"):
            self._listed_status = status
            workflow.upsert_search_attributes([search_attributes.LOOP_STATUS.value_set(status)])

    def _show(self, phase: LoopPhase, detail: str = "") -> None:
        self._phase, self._detail = phase, detail
        self._list_status()
        done, asked = self._state.num_done, self._state.num_requested
        workflow.set_current_details(
            f"**{phase.replace('_', ' ')}** {detail}\n\n{done} of {asked} iterations done"
        )

    def _result(self) -> LoopResult:
        state = self._state
        return LoopResult(
            loop_id=self._loop.loop_id,
            outcome="stopped" if self._is_stopped() else "completed",
            checkpoint=state.checkpoint,
            num_iterations=state.num_done,
            num_episodes=state.num_episodes + sum(ref.num_episodes for ref in state.parked),
            num_lost=state.num_lost,
            base_evaluation=state.base_evaluation,
            evaluations=state.evaluations,
            final_evaluation=state.final_evaluation,
            results=state.results,
        )

    @workflow.update
    async def run_iterations(self, request: RunIterationsRequest) -> int:
        """Ask for more iterations; gives the number the loop will then have done."""
        asked = max(self._state.num_requested or 0, self._state.num_done)
        self._update_state(num_requested=asked + request.num_iterations)
        return asked + request.num_iterations

    @run_iterations.validator
    def _check_run_iterations(self, request: RunIterationsRequest) -> None:
        self._refuse_when_ending()

    @workflow.update
    async def evaluate(self, request: EvaluateRequest) -> str:
        """Ask for an evaluation of the present version, once under each name; gives the name."""
        if request.name not in self._state.evaluation_names:
            names = (*self._state.evaluation_names, request.name)
            self._update_state(
                asked_evaluations=(*self._state.asked_evaluations, request),
                evaluation_names=names[-loop_bounds.KEPT_EVALUATION_NAMES :],
            )
        return request.name

    @evaluate.validator
    def _check_evaluate(self, request: EvaluateRequest) -> None:
        self._refuse_when_ending()
        if len(self._state.asked_evaluations) >= loop_bounds.MAX_ASKED_EVALUATIONS:
            raise UserError(
                f"{loop_bounds.MAX_ASKED_EVALUATIONS} evaluations wait already; ask again later"
            )

    @workflow.update
    async def pause(self) -> None:
        """Finish the running iteration, then wait."""
        self._update_state(is_paused=True)
        self._list_status()

    @pause.validator
    def _check_pause(self) -> None:
        self._refuse_when_ending()

    @workflow.update
    async def resume(self) -> None:
        """Go on after a pause."""
        self._update_state(is_paused=False)
        self._list_status()

    @workflow.update
    async def stop(self, request: StopRequest) -> None:
        """End the loop: after the running iteration, or now."""
        self._stop = request
        self._list_status()
        if request.now and self._running is not None:
            self._running.cancel()

    @workflow.update(name="set")
    async def set_(self, request: SetRequest) -> LoopConfig:
        """Change keys of the configuration; children that start later follow it."""
        self._config = steering.changed(self._config, request.changes)
        self._loop = self._loop.model_copy(update={"config": self._config})
        if self._pipeline is not None:
            await self._pipeline.configure(self._config.iteration)
        if "num_iterations" in request.changes:
            self._update_state(num_requested=self._config.num_iterations)
        return self._config

    @set_.validator
    def _check_set(self, request: SetRequest) -> None:
        self._refuse_when_ending()
        asked = steering.changed(self._config, request.changes).num_iterations
        num_begun = self._state.num_done + (self._pipeline.num_open if self._pipeline else 0)
        if "num_iterations" in request.changes and asked is not None and asked < num_begun:
            raise UserError(f"num_iterations: expected at least the {num_begun} begun, got {asked}")

    @workflow.query
    def config(self) -> LoopConfig:
        """Give the configuration as it stands."""
        return self._config

    @workflow.signal(name=COLLECTED)
    def collected(self, collected: Collected) -> None:
        """Let another iteration collect: this one has its groups."""
        self._update_state(parked=(*self._state.parked, *collected.parked))
        if self._pipeline is not None:
            self._pipeline.num_collected += 1

    @workflow.query
    def progress(self) -> LoopProgress:
        """Give the live state."""
        state = self._state
        return LoopProgress(
            loop_id=self._loop.loop_id,
            uid=state.uid,
            phase=self._phase,
            status=self._status(),
            detail=self._detail,
            iteration=state.num_done + (1 if self._phase == "iterating" else 0),
            num_requested=state.num_requested,
            policy_version=state.checkpoint.policy.version if state.checkpoint else 0,
            results=state.results,
            base_evaluation=state.base_evaluation,
            evaluations=state.evaluations,
            final_evaluation=state.final_evaluation,
            num_episodes=state.num_episodes,
            num_lost=state.num_lost,
        )

    def _refuse_when_ending(self) -> None:
        if self._is_stopped() or self._is_ending:
            raise ValueError(f"loop {self._loop.loop_id} is ending; start it anew instead")


def _uid(run_id: str) -> str:
    """Take the random end of a run id; its start is the time, which loops may share."""
    return run_id[-12:]
