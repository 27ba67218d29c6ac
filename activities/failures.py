"""Exceptions of activity bodies become typed failures, once, for all pools.

What an attempt has learnt of those before it, and its own end, travel in its heartbeats: the server
gives the newest to the next attempt, also where this one dies.
"""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pydantic
from temporalio import activity
from temporalio.exceptions import ApplicationError, is_cancelled_exception
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from loopwright.contracts.attempts import PastAttempts
from loopwright.contracts.failures import MAX_LOST_ATTEMPTS, Poisoned, type_of
from loopwright.core import attempts


class FailureInterceptor(Interceptor):
    """Gives each error of an activity its failure type, and says whether a retry can help."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the chain."""
        return _Inbound(next)


class _Inbound(ActivityInboundInterceptor):
    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._heartbeats = _Heartbeats(outbound)
        super().init(self._heartbeats)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self._refuse_poison()
        try:
            return await super().execute_activity(input)
        except (Exception, asyncio.CancelledError) as error:
            if _was_ended_from_outside(error):
                self._heartbeats.tell(attempts.with_end(self._heartbeats.past))
                raise
            raise self._failure(error) from error

    def _refuse_poison(self) -> None:
        info = activity.info()
        if not attempts.is_poison(self._heartbeats.past, attempt=info.attempt):
            return
        raise ApplicationError(
            f"{MAX_LOST_ATTEMPTS} attempts at {info.activity_type} ended without an answer: their "
            "workers were killed or ran out of time; the logs of the workers may say why",
            type=Poisoned.__name__,
            non_retryable=True,
        )

    def _failure(self, error: BaseException) -> ApplicationError:
        """Count an error, and say whether and when another attempt may follow."""
        name = _failure_type(error)
        past = attempts.with_failure(self._heartbeats.past, name)
        self._heartbeats.tell(past)
        is_final = attempts.is_spent(past, name) or getattr(error, "non_retryable", False)
        # Whoever lost the same engine or store at once must not all be back at once.
        pause = attempts.pause_seconds(past, name) * random.uniform(0.8, 1.2)
        return ApplicationError(
            error.message if isinstance(error, ApplicationError) else str(error),
            type=name,
            non_retryable=is_final,
            next_retry_delay=None if is_final else timedelta(seconds=pause),
        )


class _Heartbeats(ActivityOutboundInterceptor):
    """Heartbeats that say, before what the body says in them, how earlier attempts ended."""

    def __init__(self, next: ActivityOutboundInterceptor) -> None:
        super().__init__(next)
        self.past = _past_attempts()

    def heartbeat(self, *details: Any) -> None:
        self.next.heartbeat(self.past, *details)

    def tell(self, past: PastAttempts) -> None:
        self.past = past
        self.heartbeat()


def _past_attempts() -> PastAttempts:
    """Read what earlier attempts have told; after a reset by hand nothing counts any more."""
    info = activity.info()
    if info.attempt == 1 or not info.heartbeat_details:
        return PastAttempts()
    try:
        return PastAttempts.model_validate(info.heartbeat_details[0])
    except pydantic.ValidationError:  # told by another version: nothing is held against it
        return PastAttempts(num_ended=info.attempt - 1)


def _was_ended_from_outside(error: BaseException) -> bool:
    """Tell whether the attempt was told to end; then its error says nothing of the work."""
    return activity.cancellation_details() is not None or (
        is_cancelled_exception(error) and activity.is_worker_shutdown()
    )


def _failure_type(error: BaseException) -> str:
    if isinstance(error, pydantic.ValidationError):
        return "ContractError"
    return (error.type if isinstance(error, ApplicationError) else None) or type_of(error)
