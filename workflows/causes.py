"""What stands behind a failed activity or child workflow."""

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

from loopwright.contracts.episodes import EpisodeFailure
from loopwright.contracts.failures import row_of

Result = TypeVar("Result")


async def all_of(children: Iterable[Awaitable[Result]]) -> list[Result | None]:
    """Await every child; None stands for one that a cancellation of the parent ended.

    A parent that is cancelled goes on after its children, with what they came to: nothing of it
    runs on behind it, and nothing that had ended is forgotten.

    Raises:
        BaseException: the first failure among them, when all of them have ended.
    """
    tasks = [asyncio.ensure_future(child) for child in children]
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
    return [_outcome(task) for task in tasks]


async def end_of(child: "asyncio.Task[Result]") -> Result:
    """Await a child's end, which counts even where a cancellation of its parent comes with it."""
    try:
        return await child
    except asyncio.CancelledError:
        if child.done():
            return child.result()
        raise


@contextmanager
def until_cancelled() -> Iterator[None]:
    """Leave the block without an error when this workflow is cancelled."""
    try:
        yield
    except (FailureError, asyncio.CancelledError) as error:
        if workflow.cancellation_reason() is None or not is_cancellation(error):
            raise


def raise_if_cancelled() -> None:
    """Raise what ends a block of ``until_cancelled``, if this workflow was cancelled."""
    if workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError


def is_cancellation(error: BaseException) -> bool:
    """Tell whether a cancellation, and nothing else, is behind ``error``."""
    *_, root = _causes(error)
    return is_cancelled_exception(error) or isinstance(root, CancelledError)


def is_unserved(error: ActivityError) -> bool:
    """Tell whether no worker took an activity in the time it was given for that."""
    timeout = error.cause
    return isinstance(timeout, TimeoutError) and timeout.type is TimeoutType.SCHEDULE_TO_START


def failure_of(error: BaseException) -> EpisodeFailure:
    """Name the failure behind ``error``, with its owner: the first that was given a type.

    What stands behind that one is for the logs.
    """
    *_, root = causes = list(_causes(error))
    typed = (each for each in causes if isinstance(each, ApplicationError) and each.type)
    found = next(typed, root)
    name = (found.type if isinstance(found, ApplicationError) else None) or type(found).__name__
    return EpisodeFailure(owner=row_of(name).owner, type=name, message=str(found)[:500])


def _outcome(child: asyncio.Future[Result]) -> Result | None:
    try:
        return child.result()
    except (FailureError, asyncio.CancelledError) as error:
        if is_cancellation(error):
            return None
        raise


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give ``error`` and what is behind it, the first cause last."""
    yield error
    while isinstance(error, FailureError) and error.cause is not None:
        error = error.cause
        yield error
