"""Errors of the Temporal server about schedules, as the errors of this package."""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.client import ScheduleAlreadyRunningError
from temporalio.service import RPCError, RPCStatusCode

from loopwright.contracts.failures import UserError
from loopwright.sdk.server_errors import of_rpc


class UnknownSchedule(UserError):
    """There is no schedule of this name."""


class ScheduleExists(UserError):
    """There is a schedule of this name."""


@contextmanager
def translated_schedule(name: str | None = None) -> Iterator[None]:
    """Raise what went wrong as an error of this package.

    Args:
        name: the schedule that was asked about; None when all of them were.
    """
    subject = "the schedules" if name is None else f"schedule {name}"
    try:
        yield
    except ScheduleAlreadyRunningError as error:
        raise ScheduleExists(
            f"there is a schedule {name} already; delete it first, or choose another name"
        ) from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise UnknownSchedule(f"there is no schedule {name!r}") from error
        raise of_rpc(subject, None, error) from error
