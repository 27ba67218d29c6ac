"""Errors of the Temporal server and client, as the errors of this package."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
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

from loopwright.contracts.failures import ContractError, LoopError, UserError

_UNANSWERED = (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.UNAVAILABLE)
_LOST_CONNECTIONS = ("transport error", "h2 protocol error", "error reading a body", "broken pipe")
"""What the SDK's core says where a connection ends before the answer, whatever the status."""


class LoopUnanswered(LoopError):
    """Neither the server nor a worker of the control pool answered in time."""


class UnknownLoop(UserError):
    """There is no loop of this id."""


@contextmanager
def translated(loop_id: str | None = None) -> Iterator[None]:
    """Raise what went wrong as an error of this package.

    Args:
        loop_id: the loop that was asked about; None when all of them were.
    """
    subject = "the loops" if loop_id is None else f"loop {loop_id}"
    try:
        yield
    except RPCError as error:
        raise of_rpc(subject, loop_id, error) from error
    except WorkflowUpdateFailedError as error:
        raise UserError(f"{subject} refuses: {message_of(error.cause)}") from error
    except WorkflowUpdateRPCTimeoutOrCancelledError as error:
        raise _unanswered(subject) from error
    except (WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
        raise LoopError(f"{subject} cannot tell its progress: {_first_line(error)}") from error
    except WorkflowFailureError as error:
        raise LoopError(_failure(subject, error.cause)) from error
    except ValidationError as error:
        raise ContractError(
            f"{subject}: the answer is not one of this version of loopwright; ask with the "
            f"version that its workers have"
        ) from error


def of_rpc(subject: str, loop_id: str | None, error: RPCError) -> LoopError:
    """Tell an unknown loop from a server or worker that does not answer."""
    if error.status == RPCStatusCode.NOT_FOUND:
        if "completed" in error.message:
            return UserError(f"{subject} has ended; start it anew instead")
        return UnknownLoop(f"there is no loop {loop_id!r}")
    if _is_unanswered(error):
        return _unanswered(subject)
    if missing := re.search(r"search attribute (\w+)", error.message):
        return UserError(
            f"{subject}: Temporal's namespace lacks the search attribute {missing[1]}; register "
            f"all of deploy/temporal/search-attributes.yaml in it"
        )
    return LoopError(f"{subject}: the Temporal server refuses: {_first_line(error)}")


def _is_unanswered(error: RPCError) -> bool:
    """Tell whether the server, or who answers for it, has said nothing."""
    said = error.message.lower()
    return error.status in _UNANSWERED or any(
        words in said for words in ("no poller", *_LOST_CONNECTIONS)
    )


def _failure(subject: str, cause: BaseException | None) -> str:
    """Say in one line why a loop did not complete."""
    if isinstance(cause, CancelledError):
        return f"{subject} was cancelled"
    if isinstance(cause, TerminatedError):
        return f"{subject} was terminated: {message_of(cause)}"
    if isinstance(cause, TimeoutError):
        return f"{subject} timed out"
    return f"{subject} failed: {message_of(cause)}"


def message_of(cause: BaseException | None) -> str:
    """Say the reason for which a workflow or an update failed, and its type where it tells more."""
    if isinstance(cause, ApplicationError) and cause.type not in (None, "ValueError", "UserError"):
        return f"{cause.message} ({cause.type})"
    return cause.message if isinstance(cause, FailureError) else str(cause)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["for no reason that it tells"])[0]


def _unanswered(subject: str) -> LoopUnanswered:
    return LoopUnanswered(
        f"no answer about {subject}: Temporal is not reachable or no worker of the control pool "
        f"runs; see `loopwright status`"
    )
