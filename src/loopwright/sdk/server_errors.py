"""Errors of the Temporal server and client, as the errors of this package."""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.client import (
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    FailureError,
    TerminatedError,
    TimeoutError,
)
from temporalio.service import RPCError, RPCStatusCode

from loopwright.contracts.failures import LoopError, UserError

_UNANSWERED = (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.UNAVAILABLE)


class LoopUnanswered(LoopError):
    """Neither the server nor a worker of the control pool answered in time."""


class UnknownLoop(UserError):
    """There is no loop of this id."""


@contextmanager
def translated(loop_id: str) -> Iterator[None]:
    """Raise what went wrong with a loop as an error of this package."""
    try:
        yield
    except RPCError as error:
        raise of_rpc(loop_id, error) from error
    except WorkflowUpdateFailedError as error:
        raise UserError(f"loop {loop_id} refuses: {_message(error.cause)}") from error
    except WorkflowUpdateRPCTimeoutOrCancelledError as error:
        raise _unanswered(loop_id) from error
    except (WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
        raise LoopError(f"loop {loop_id} cannot tell its progress: {error}") from error
    except WorkflowFailureError as error:
        raise LoopError(failure_message(loop_id, error.cause)) from error


def of_rpc(loop_id: str, error: RPCError) -> LoopError:
    """Tell an unknown loop from a server or worker that does not answer."""
    if error.status == RPCStatusCode.NOT_FOUND:
        if "completed" in error.message:
            return UserError(f"loop {loop_id} has ended; start it anew instead")
        if "namespace" in error.message.lower():
            return UserError(f"Temporal has no such namespace: {error.message}")
        return UnknownLoop(f"there is no loop {loop_id!r}")
    if error.status in _UNANSWERED or "no poller" in error.message.lower():
        return _unanswered(loop_id)
    return LoopError(f"loop {loop_id}: the Temporal server refuses: {error.message}")


def failure_message(loop_id: str, cause: BaseException | None) -> str:
    """Say in one line why a loop did not complete."""
    if isinstance(cause, CancelledError):
        return f"loop {loop_id} was cancelled"
    if isinstance(cause, TerminatedError):
        return f"loop {loop_id} was terminated: {_message(cause)}"
    if isinstance(cause, TimeoutError):
        return f"loop {loop_id} timed out"
    return f"loop {loop_id} failed: {_message(cause)}"


def _message(cause: BaseException | None) -> str:
    if isinstance(cause, ApplicationError) and cause.type not in (None, "ValueError"):
        return f"{cause.message} ({cause.type})"
    return cause.message if isinstance(cause, FailureError) else str(cause)


def _unanswered(loop_id: str) -> LoopUnanswered:
    return LoopUnanswered(
        f"no answer about loop {loop_id}: Temporal is not reachable or no worker of the control "
        f"pool runs; see `loopwright status`"
    )
