"""The evaluations of a loop: before, between and after its iterations, and those asked for."""

from temporalio import workflow

from loopwright.contracts import ids
from loopwright.contracts.evaluations import EvaluateRequest, EvaluationResult
from loopwright.core import stopping

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.loop_children import run_evaluation
    from loopwright.workflows.loop_record import LoopRecord
    from loopwright.workflows.loop_work import LoopWork


class LoopEvaluations:
    """Evaluates the present version when it is due; nothing while the loop is stopped."""

    def __init__(self, record: LoopRecord, work: LoopWork) -> None:
        self._record = record
        self._work = work

    async def evaluate_base(self) -> None:
        """Evaluate version 0, unless that was done."""
        wants = self._record.config.evaluation.at_start and not self._record.is_stopped
        if wants and self._record.state.base_evaluation is None:
            self._record.update(
                base_evaluation=await self._evaluate(EvaluateRequest(name="base"), of="base policy")
            )

    async def evaluate_if_due(self) -> None:
        """Evaluate after every so many iterations."""
        done = self._record.state.num_done
        if stopping.evaluation_is_due(done, self._record.config.evaluation.every):
            of = f"policy after iteration {done}"
            found = await self._evaluate(EvaluateRequest(name=ids.evaluation_name(done)), of=of)
            if found is not None:
                self._record.add_evaluation(found)

    async def evaluate_asked(self) -> None:
        """Make the evaluations that were asked for, in order."""
        while self._record.has_evaluation() and not self._record.is_stopped:
            asked, *others = self._record.state.asked_evaluations
            done = self._record.state.num_done
            if not await self._work.acquire_engine():
                return
            self._record.update(asked_evaluations=tuple(others))
            await self._evaluate(
                asked, of=f"evaluation {asked.name}: policy after iteration {done}"
            )

    async def evaluate_final(self) -> None:
        """Evaluate the last version, unless that was done."""
        self._record.is_ending = True
        state, wants = self._record.state, self._record.config.evaluation.at_end
        if wants and not self._record.is_stopped and state.final_evaluation is None:
            known = (state.base_evaluation, *state.evaluations)
            found = stopping.evaluation_after(state.num_done, known)
            found = found or await self._evaluate(EvaluateRequest(name="final"), of="final policy")
            self._record.update(final_evaluation=found)

    async def _evaluate(self, asked: EvaluateRequest, *, of: str) -> EvaluationResult | None:
        """Evaluate the present version; None when the loop was stopped meanwhile."""
        if not await self._work.acquire_engine():
            return None
        version = self._record.checkpoint.policy.version
        self._record.show("evaluating", f"{of}, version {version}")
        name = f"evaluation {asked.name}"
        work = run_evaluation(self._record.loop, self._record.state, asked)
        result = await self._work.interruptible(name, work)
        if result is None:
            return None
        self._record.count(result.num_episodes, result.num_lost)
        self._work.refuse_foreign_stop(name, result.outcome)
        return result if result.outcome == "completed" else None
