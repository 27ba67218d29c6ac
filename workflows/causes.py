"""What stands behind a failed activity or child workflow."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    FailureError,
    is_cancelled_exception,
)

from loopwright.contracts import failures
from loopwright.contracts.episodes import EpisodeFailure

Result = TypeVar("Result")


async def all_of(children: Iterable[Awaitable[Result]]) -> list[Result]:
    """Await every child, cancelled ones too, before the first failure among them is raised.

    A parent that is cancelled ends after its children: nothing of it runs on.
    """
    found = await asyncio.gather(*children, return_exceptions=True)
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return [result for result in found if not isinstance(result, BaseException)]


def is_cancellation(error: BaseException) -> bool:
    """Tell whether a cancellation, and nothing else, is behind ``error``."""
    return is_cancelled_exception(error) or isinstance(_root(error), CancelledError)


def failure_of(error: BaseException) -> EpisodeFailure:
    """Name the failure behind ``error``, with its owner."""
    root = _root(error)
    name = (root.type if isinstance(root, ApplicationError) else None) or type(root).__name__
    known = getattr(failures, name, failures.LoopError)
    return EpisodeFailure(owner=known.owner, type=name, message=str(root)[:500])


def _root(error: BaseException) -> BaseException:
    """Follow the causes to the first one."""
    while isinstance(error, FailureError) and error.cause is not None:
        error = error.cause
    return error
