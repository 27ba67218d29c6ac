"""What the client tells of schedules."""

from datetime import UTC, datetime
from typing import Literal

from temporalio import client as temporal
from temporalio.api.schedule.v1 import ScheduleActionResult
from temporalio.client import WorkflowExecutionStatus

from loopwright.contracts.base import Contract
from loopwright.contracts.schedules import ScheduledWorkInput, ScheduledWorkResult, Work
from loopwright.sdk.schedule_specs import words_of_spec

FiringOutcome = Literal["running", "completed", "failed", "cancelled", "terminated", "timed_out"]

_OUTCOMES: dict[int, FiringOutcome] = {
    WorkflowExecutionStatus.COMPLETED: "completed",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.CANCELED: "cancelled",
    WorkflowExecutionStatus.TERMINATED: "terminated",
    WorkflowExecutionStatus.TIMED_OUT: "timed_out",
}


class Firing(Contract):
    """One time that a schedule fired."""

    scheduled_at: datetime
    started_at: datetime
    workflow_id: str
    outcome: FiringOutcome
    """As the schedule knows it; it hears of an end a moment later."""
    result: ScheduledWorkResult | None = None
    """What it came to, in a description."""
    failure: str | None = None
    """Why it failed, in a description."""

    @classmethod
    def of(cls, action: ScheduleActionResult) -> "Firing":
        """Read it from what the server keeps of a schedule."""
        return cls(
            scheduled_at=action.schedule_time.ToDatetime(UTC),
            started_at=action.actual_time.ToDatetime(UTC),
            workflow_id=action.start_workflow_result.workflow_id,
            outcome=_OUTCOMES.get(action.start_workflow_status, "running"),
        )


class ScheduleDescription(Contract):
    """One schedule: what it does, and what became of its times."""

    name: str
    loop_id: str
    work: Work
    times: tuple[str, ...]
    """When it fires, in words: ``every 6h``, ``cron 0 3 * * *``."""
    time_zone: str
    jitter_seconds: int
    overlap: str
    """As in a ``ScheduleConfig``, unless another program has changed it."""
    catch_up_seconds: int | None
    """None is the server's own bound."""
    pauses_on_failure: bool
    is_paused: bool
    note: str | None
    """Why it was paused or resumed."""
    num_fired: int
    num_skipped: int
    """Times, and calls to fire, that were left out because an earlier firing had not ended."""
    num_missed: int
    """Times that were past the catch-up window when the server was back."""
    num_dropped: int
    """Times that the server could not keep waiting."""
    num_waiting: int
    """Firings that wait for an earlier one to end."""
    running: tuple[str, ...]
    """Workflow ids of the firings that have not ended."""
    firings: tuple[Firing, ...]
    """The last ten, the newest last."""
    next_times: tuple[datetime, ...]
    """The next ten, without jitter; empty when none is left."""
    created_at: datetime

    @classmethod
    def of(
        cls, found: temporal.ScheduleDescription, firing: ScheduledWorkInput
    ) -> "ScheduleDescription":
        """Describe a schedule whose firings have this input."""
        schedule, info = found.schedule, found.raw_description.info
        window = schedule.policy.catchup_window
        return cls(
            name=found.id,
            loop_id=firing.loop_id,
            work=firing.work,
            times=tuple(words_of_spec(schedule.spec)),
            time_zone=schedule.spec.time_zone_name or "UTC",
            jitter_seconds=int(schedule.spec.jitter.total_seconds()) if schedule.spec.jitter else 0,
            overlap=schedule.policy.overlap.name.lower(),
            catch_up_seconds=int(window.total_seconds()) if window else None,
            pauses_on_failure=schedule.policy.pause_on_failure,
            is_paused=schedule.state.paused,
            note=schedule.state.note,
            num_fired=info.action_count,
            num_skipped=info.overlap_skipped,
            num_missed=info.missed_catchup_window,
            num_dropped=info.buffer_dropped,
            num_waiting=info.buffer_size,
            running=tuple(each.workflow_id for each in info.running_workflows),
            firings=tuple(map(Firing.of, info.recent_actions)),
            next_times=tuple(found.info.next_action_times),
            created_at=found.info.created_at,
        )
