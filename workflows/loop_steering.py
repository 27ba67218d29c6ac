"""How a loop is operated and read while it runs: its updates, queries and signals."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from loopwright.contracts import activities
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.evaluations import EvaluateRequest
from loopwright.contracts.failures import UserError
from loopwright.contracts.iterations import (
    Collected,
    LoopProgress,
    RunIterationsRequest,
    SelectTasksRequest,
    SetRequest,
    StopRequest,
)
from loopwright.contracts.tasks import Split
from loopwright.core import loop_bounds, run_limits, steering

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import failure_of
    from loopwright.workflows.iteration import COLLECTED
    from loopwright.workflows.loop_record import LoopRecord
    from loopwright.workflows.loop_work import LoopWork
    from loopwright.workflows.options import call
    from loopwright.workflows.pipeline import Pipeline


class LoopSteering:
    """The handlers of a loop, each request refused before it is accepted if it cannot be done."""

    _record: LoopRecord
    _work: LoopWork
    _pipeline: Pipeline | None = None

    @workflow.query
    def progress(self) -> LoopProgress:
        """Give the live state."""
        return self._record.progress()

    @workflow.query
    def config(self) -> LoopConfig:
        """Give the configuration as it stands."""
        return self._record.config

    @workflow.update
    async def run_iterations(self, request: RunIterationsRequest) -> int:
        """Ask for more iterations; gives the number the loop will then have done."""
        state = self._record.state
        asked = max(state.num_requested or 0, state.num_done) + request.num_iterations
        self._record.update(num_requested=asked)
        return asked

    @run_iterations.validator
    def _check_run_iterations(self, request: RunIterationsRequest) -> None:
        self._refuse_when_ending()

    @workflow.update
    async def evaluate(self, request: EvaluateRequest) -> str:
        """Ask for an evaluation of the present version, once under each name; gives the name.

        Raises:
            UserError: there are not the tasks that it asks for, which would end the loop.
        """
        config = self._record.config
        await _check_tasks(config, "heldout", request.num_tasks or config.evaluation.num_tasks)
        self._check_evaluate(request)
        state = self._record.state
        if request.name not in state.evaluation_names:
            names = (*state.evaluation_names, request.name)
            self._record.update(
                asked_evaluations=(*state.asked_evaluations, request),
                evaluation_names=names[-loop_bounds.KEPT_EVALUATION_NAMES :],
            )
        return request.name

    @evaluate.validator
    def _check_evaluate(self, request: EvaluateRequest) -> None:
        self._refuse_when_ending()
        if len(self._record.state.asked_evaluations) >= loop_bounds.MAX_ASKED_EVALUATIONS:
            raise UserError(
                f"{loop_bounds.MAX_ASKED_EVALUATIONS} evaluations wait already; ask again later"
            )

    @workflow.update
    async def pause(self) -> None:
        """Finish the running iteration, then wait."""
        self._record.update(is_paused=True)
        self._record.list_status()

    @pause.validator
    def _check_pause(self) -> None:
        self._refuse_when_ending()

    @workflow.update
    async def resume(self) -> None:
        """Go on after a pause."""
        self._record.update(is_paused=False)
        self._record.list_status()

    @resume.validator
    def _check_resume(self) -> None:
        self._refuse_when_ending()

    @workflow.update
    async def stop(self, request: StopRequest) -> None:
        """End the loop: after the running iteration, or now."""
        self._record.stop = StopRequest(now=request.now or self._record.is_stopped_now)
        self._record.list_status()
        if request.now:
            self._work.cancel()

    @workflow.update(name="set")
    async def set_(self, request: SetRequest) -> LoopConfig:
        """Change keys of the configuration; children that start later follow it.

        Raises:
            UserError: there are not the tasks that it asks for; nothing is changed.
        """
        await self._check_tasks_of(request)
        self._check_set(request)
        config = steering.changed(self._record.config, request.changes)
        self._record.configure(config)
        if self._pipeline is not None:
            await self._pipeline.configure(config.iteration)
        if "num_iterations" in request.changes and config.num_iterations is not None:
            self._record.update(num_requested=config.num_iterations)
        return self._record.config

    async def _check_tasks_of(self, request: SetRequest) -> None:
        config = steering.changed(self._record.config, request.changes)
        if steering.changes_tasks(request.changes):
            await _check_tasks(config, "train", run_limits.num_begun(config.iteration))
        if steering.changes_heldout_tasks(config, request.changes):
            await _check_tasks(config, "heldout", config.evaluation.num_tasks)

    @set_.validator
    def _check_set(self, request: SetRequest) -> None:
        self._refuse_when_ending()
        asked = steering.changed(self._record.config, request.changes).num_iterations
        num_open = self._pipeline.num_open if self._pipeline else 0
        num_begun = self._record.state.num_done + num_open
        if "num_iterations" in request.changes and asked is not None and asked < num_begun:
            raise UserError(f"num_iterations: expected at least the {num_begun} begun, got {asked}")

    @workflow.signal(name=COLLECTED)
    def collected(self, collected: Collected) -> None:
        """Let another iteration collect: this one has its groups."""
        self._record.update(parked=(*self._record.state.parked, *collected.parked))
        if self._pipeline is not None:
            self._pipeline.num_collected += 1

    def _refuse_when_ending(self) -> None:
        if self._record.is_stopped or self._record.is_ending:
            loop_id = self._record.loop.loop_id
            raise UserError(f"loop {loop_id} is ending; start it anew instead")


async def _check_tasks(config: LoopConfig, split: Split, num_tasks: int) -> None:
    """Draw as an iteration or evaluation would: an environment alone knows its tasks."""
    try:
        await call(
            activities.select_tasks,
            SelectTasksRequest(
                environments=config.environments,
                split=split,
                num_tasks=num_tasks,
                seed=config.seed,
            ),
            summary="draw tasks to check a change",
        )
    except ActivityError as error:
        raise UserError(failure_of(error).message.removeprefix("UserError: ")) from error
