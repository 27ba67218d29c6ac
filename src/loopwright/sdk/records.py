"""What the client tells of loops, beyond their progress and result."""

from datetime import datetime

from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from loopwright.contracts import ids
from loopwright.contracts.base import Contract
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.iterations import OPEN_STATUSES, LoopProgress, LoopStatus
from loopwright.contracts.search_attributes import LOOP_STATUS

_STATUSES: dict[WorkflowExecutionStatus, LoopStatus] = {
    WorkflowExecutionStatus.COMPLETED: "completed",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.CANCELED: "cancelled",
    WorkflowExecutionStatus.TERMINATED: "terminated",
    WorkflowExecutionStatus.TIMED_OUT: "timed_out",
}
_OPEN: dict[str, LoopStatus] = {status: status for status in OPEN_STATUSES}


class LoopSummary(Contract):
    """One loop among others."""

    loop_id: str
    status: LoopStatus
    started_at: datetime
    """When it started, or last continued as new."""
    closed_at: datetime | None
    """None while it runs."""

    @classmethod
    def of(cls, execution: WorkflowExecution) -> "LoopSummary":
        """Summarise an execution of the workflow ``Loop``."""
        return cls(
            loop_id=execution.id.removeprefix(ids.loop_workflow_id("")),
            status=status_of(execution),
            started_at=execution.start_time,
            closed_at=execution.close_time,
        )


class LoopDescription(LoopSummary):
    """One loop in full."""

    config: LoopConfig
    """The configuration it was started with."""
    progress: LoopProgress | None
    """None when no worker of the control pool answers."""
    failure: str | None = None
    """Why it failed."""


def status_of(execution: WorkflowExecution) -> LoopStatus:
    """Name an execution's status; one that continued as new is running."""
    known = _STATUSES.get(execution.status or WorkflowExecutionStatus.RUNNING)
    listed = execution.typed_search_attributes.get(LOOP_STATUS)
    if known is None:
        return _OPEN.get(listed or "running", _OPEN["running"])
    if known == "completed" and listed == "stopped":
        return "stopped"
    return known
