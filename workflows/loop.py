"""The loop: iterations one after another, operated by updates."""

from temporalio import workflow

from loopwright.contracts import activities, ids
from loopwright.contracts.iterations import IterationResult, LoopInput, LoopResult
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.contracts.training import ImportPolicyRequest
from loopwright.core import loop_bounds, staleness

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import raise_if_cancelled
    from loopwright.workflows.continuation import Continuation
    from loopwright.workflows.loop_children import IterationHandle, start_iteration
    from loopwright.workflows.loop_evaluations import LoopEvaluations
    from loopwright.workflows.loop_record import LoopRecord
    from loopwright.workflows.loop_steering import LoopSteering
    from loopwright.workflows.loop_work import LoopWork
    from loopwright.workflows.options import call
    from loopwright.workflows.pipeline import Pipeline


@workflow.defn(name=ids.LOOP)
class LoopWorkflow(LoopSteering):
    """Durable life of one loop, ``loop/L``.

    An entity: it runs the iterations it was asked for, then ends, or idles when its number is
    left open. Operated by updates and read by queries (``LoopSteering``). It holds the lease of
    its engine only while it works. A stop ends it as completed, with the outcome ``stopped``.
    """

    @workflow.init
    def __init__(self, loop: LoopInput) -> None:
        self._record = LoopRecord(loop)
        self._work = LoopWork(self._record)
        self._evaluations = LoopEvaluations(self._record, self._work)
        self._continuation = Continuation()

    @workflow.run
    async def run(self, loop: LoopInput) -> LoopResult:
        """Run the iterations asked for, between an evaluation before and one after."""
        async with self._work.lease:
            await self._import_policy()
            await self._evaluations.evaluate_base()
            while not self._record.is_over():
                await self._wait_for_work()
                await self._evaluations.evaluate_asked()
                await self._run_iterations()
                await self._continue_as_new_if_long()
            await self._evaluations.evaluate_final()
        self._record.show("ended")
        return self._record.result()

    async def _import_policy(self) -> None:
        """Make version 0 from the model the configuration names."""
        if self._record.state.checkpoint is not None:
            return
        policy_id = f"{self._record.loop.loop_id}-{self._record.state.uid}"
        policy = PolicyVersion(policy_id=policy_id, version=0)
        model = self._record.config.policy.model
        imported = call(
            activities.import_policy,
            ImportPolicyRequest(model=model, policy=policy, prefix=self._record.prefix),
            summary=f"import {model}",
            profile=self._record.config.profile,
        )
        checkpoint = await self._work.interruptible(f"import of {model}", imported)
        self._record.update(checkpoint=checkpoint)

    async def _wait_for_work(self) -> None:
        """Return when there is something to run, or this run of the loop is to end."""
        while not self._has_news():
            await self._work.lease.release()
            await self._wait_while(is_paused=self._record.state.is_paused)

    async def _wait_while(self, *, is_paused: bool) -> None:
        """Return when there is news, or a pause begins or ends."""
        self._record.show("paused" if is_paused else "idle")
        await workflow.wait_condition(
            lambda: self._has_news() or self._record.state.is_paused is not is_paused
        )

    def _has_news(self) -> bool:
        return self._record.is_asked() or self._record.is_over() or self._is_run_long()

    async def _run_iterations(self) -> None:
        """Run iterations, overlapping as the staleness lets them, until none may follow."""
        if not (self._may_start(0) and await self._work.acquire_engine() and self._may_start(0)):
            return
        self._pipeline = Pipeline(
            start=self._start_iteration,
            may_start=self._may_start,
            finish=self._finish_iteration,
            is_cut_short=lambda: self._record.is_stopped_now,
        )
        await self._work.interruptible(None, self._pipeline.run())

    def _may_start(self, num_open: int) -> bool:
        """Tell whether an iteration may begin behind so many unfinished ones."""
        return (
            self._record.has_work(num_open)
            and not self._record.has_reached_target()
            and not self._is_run_long(num_open)
            and staleness.may_collect(
                num_open=num_open, max_staleness=self._record.config.iteration.max_staleness
            )
        )

    async def _start_iteration(self, num_open: int) -> IterationHandle:
        self._show_iterations(num_open + 1)
        state = self._record.state
        self._record.update(parked=())
        return await start_iteration(self._record.loop, state, num_open=num_open)

    async def _finish_iteration(self, result: IterationResult) -> CheckpointRef:
        self._record.add_iteration(result)
        raise_if_cancelled()
        self._work.refuse_foreign_stop(f"iteration {result.index}", result.outcome)
        await self._evaluations.evaluate_if_due()
        await self._evaluations.evaluate_asked()
        self._show_iterations(self._pipeline.num_open if self._pipeline else 0)
        return self._record.checkpoint

    def _show_iterations(self, num_open: int) -> None:
        if num_open:
            others = f", {num_open - 1} more behind it" if num_open > 1 else ""
            self._record.show("iterating", f"{self._record.oldest_iteration}{others}")

    async def _continue_as_new_if_long(self) -> None:
        if self._is_run_long() and not self._record.is_over():
            if not self._record.is_asked():
                await self._work.lease.release()
            await self._work.continue_as_new()

    def _is_run_long(self, num_open: int = 0) -> bool:
        """Tell whether this run is to be continued as new before another iteration."""
        num_begun = self._record.num_this_run + num_open
        return self._continuation.is_due() or num_begun >= loop_bounds.ITERATIONS_PER_RUN
