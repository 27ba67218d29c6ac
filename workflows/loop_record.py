"""What a loop knows while it runs, and what follows from that."""

from temporalio import workflow

from loopwright.contracts import ids
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.evaluations import EvaluationResult
from loopwright.contracts.groups import DropCounts
from loopwright.contracts.iterations import (
    IterationResult,
    LoopInput,
    LoopPhase,
    LoopProgress,
    LoopResult,
    LoopState,
    LoopStatus,
    StopRequest,
)
from loopwright.contracts.policies import CheckpointRef
from loopwright.core import details, loop_bounds, stopping
from loopwright.core.loop_status import loop_status

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows import search_attributes


class LoopRecord:
    """The state of one loop: what outlives continue-as-new, and what this run adds to it."""

    def __init__(self, loop: LoopInput) -> None:
        self.loop = loop
        self.state = loop.state or LoopState(
            uid=_uid(workflow.info().first_execution_run_id),
            num_requested=loop.config.num_iterations,
        )
        self.stop: StopRequest | None = None
        self.is_ending = False
        """Whether nothing more can be asked of it."""
        self.has_failed = False
        self.num_this_run = 0
        """Iterations finished since it began or last continued as new."""
        self._phase: LoopPhase = "starting"
        self._detail = ""
        self._listed_status = search_attributes.listed_status(workflow.info())

    @property
    def config(self) -> LoopConfig:
        """The configuration as it stands."""
        return self.loop.config

    @property
    def checkpoint(self) -> CheckpointRef:
        """The newest version."""
        assert self.state.checkpoint is not None
        return self.state.checkpoint

    @property
    def prefix(self) -> str:
        """The key prefix of its artifacts."""
        return ids.loop_prefix(self.loop.loop_id, self.state.uid)

    @property
    def oldest_iteration(self) -> str:
        """The oldest unfinished iteration, in words."""
        return f"iteration {self.state.num_done + 1}"

    @property
    def is_stopped(self) -> bool:
        """Whether an update has asked for the end."""
        return self.stop is not None

    @property
    def is_stopped_now(self) -> bool:
        """Whether the end is not to wait for the running iterations either."""
        return self.stop is not None and self.stop.now

    def configure(self, config: LoopConfig) -> None:
        """Follow another configuration from now on."""
        self.loop = self.loop.model_copy(update={"config": config})

    def update(self, **changes: object) -> None:
        """Change fields of what outlives continue-as-new."""
        self.state = self.state.model_copy(update=changes)

    def add_iteration(self, result: IterationResult) -> None:
        """Take what an iteration came to."""
        self.num_this_run += 1
        row = result.model_copy(update={"checkpoint": None, "report": None})
        self.update(
            checkpoint=result.checkpoint,
            num_done=result.index,
            drops=DropCounts(
                num_skipped_tasks=self.state.drops.num_skipped_tasks + result.num_skipped_tasks,
                num_infra_drops_in_a_row=result.num_infra_drops_in_a_row,
            ),
            results=(*self.state.results, row)[-loop_bounds.KEPT_RESULTS :],
        )
        self.count(result.num_episodes, result.num_lost)

    def add_evaluation(self, result: EvaluationResult) -> None:
        """Take an evaluation between iterations."""
        older = self.state.evaluations
        # Only the newest, which may be of the final policy, carries its breakdown.
        kept = (*(each.model_copy(update={"report": None}) for each in older), result)
        self.update(evaluations=kept[-loop_bounds.KEPT_EVALUATIONS :])

    def count(self, num_episodes: int, num_lost: int) -> None:
        """Count episodes that were asked for, and those of them without a recorded outcome."""
        self.update(
            num_episodes=self.state.num_episodes + num_episodes,
            num_lost=self.state.num_lost + num_lost,
        )

    def has_work(self, num_open: int = 0) -> bool:
        """Tell whether an iteration is asked for behind so many unfinished ones."""
        if self.state.is_paused or self.is_stopped:
            return False
        requested = self.state.num_requested
        return requested is not None and self.state.num_done + num_open < requested

    def has_evaluation(self) -> bool:
        """Tell whether an evaluation that was asked for is to be made now."""
        return bool(self.state.asked_evaluations) and not self.state.is_paused

    def is_asked(self) -> bool:
        """Tell whether there is anything to do now."""
        return self.has_work() or self.has_evaluation()

    def has_reached_target(self) -> bool:
        """Tell whether the policy is as good as the configuration asks for."""
        rates = [result.first_pass_rate for result in self.state.results]
        return stopping.target_is_reached(rates, self.config.target_pass_rate)

    def is_over(self) -> bool:
        """Tell whether nothing will follow: no iteration, and no evaluation that was asked for."""
        if self.is_stopped:
            return True
        if self.state.is_paused or self.state.asked_evaluations:
            return False
        return self.has_reached_target() or (
            self.config.num_iterations is not None and not self.has_work()
        )

    def show(self, phase: LoopPhase, detail: str = "") -> None:
        """Tell what the loop is at, in lists of loops and in the Web UI."""
        self._phase, self._detail = phase, detail
        self.list_status()
        namespace = workflow.info().namespace
        workflow.set_current_details(details.of_loop(self.progress(), namespace=namespace))

    def list_status(self) -> None:
        """Let lists of loops show what Temporal's own status does not tell."""
        status = self._status()
        if status not in (self._listed_status, "completed"):
            self._listed_status = status
            workflow.upsert_search_attributes([search_attributes.LOOP_STATUS.value_set(status)])

    def _status(self) -> LoopStatus:
        if self.has_failed:
            return "failed"
        if workflow.cancellation_reason() is not None:
            return "cancelled"
        return loop_status(self._phase, is_paused=self.state.is_paused, is_stopped=self.is_stopped)

    def progress(self) -> LoopProgress:
        """Give the live state."""
        state = self.state
        return LoopProgress(
            loop_id=self.loop.loop_id,
            uid=state.uid,
            phase=self._phase,
            status=self._status(),
            detail=self._detail,
            iteration=state.num_done + (1 if self._phase == "iterating" else 0),
            num_done=state.num_done,
            num_requested=state.num_requested,
            policy_version=state.checkpoint.policy.version if state.checkpoint else 0,
            results=state.results,
            base_evaluation=state.base_evaluation,
            evaluations=state.evaluations,
            final_evaluation=state.final_evaluation,
            num_episodes=state.num_episodes,
            num_lost=state.num_lost,
        )

    def result(self) -> LoopResult:
        """Tell how the loop ended."""
        state = self.state
        return LoopResult(
            loop_id=self.loop.loop_id,
            outcome="stopped" if self.is_stopped else "completed",
            checkpoint=state.checkpoint,
            num_iterations=state.num_done,
            num_episodes=state.num_episodes + sum(ref.num_episodes for ref in state.parked),
            num_lost=state.num_lost,
            base_evaluation=state.base_evaluation,
            evaluations=state.evaluations,
            final_evaluation=state.final_evaluation,
            results=state.results,
        )


def _uid(run_id: str) -> str:
    """Take the random end of a run id; its start is the time, which loops may share."""
    return run_id[-12:]
