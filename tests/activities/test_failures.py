"""What an attempt makes of an error, of a stop and of those before it; no server."""

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pydantic
import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
)

from loopwright.activities.failures import FailureInterceptor
from loopwright.contracts.attempts import PastAttempts
from loopwright.contracts.failures import (
    ArtifactDamaged,
    EngineUnavailable,
    StoreError,
    TaskError,
    UserError,
)


class Body(ActivityInboundInterceptor):
    """An activity that heartbeats once and then does as its test says."""

    def __init__(self, end: Callable[[], Any]) -> None:
        self._end = end

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._outbound = outbound

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self._outbound.heartbeat("at work")
        return self._end()


class Outbound(ActivityOutboundInterceptor):
    """The worker's side: remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def heartbeat(self, *details: Any) -> None:
        self.sent.append(details)


@dataclasses.dataclass
class Attempt:
    """One attempt, and what it tells the next."""

    number: int = 1
    past: PastAttempts | dict[str, int] | None = None
    outbound: Outbound = dataclasses.field(default_factory=Outbound)
    environment: ActivityEnvironment = dataclasses.field(default_factory=ActivityEnvironment)

    async def run(self, end: Callable[[], Any]) -> Any:
        """Run a body behind the interceptor."""
        details = [dict(self.past)] if self.past else []
        self.environment.info = dataclasses.replace(
            self.environment.info, attempt=self.number, heartbeat_details=details
        )

        async def attempt() -> Any:
            inbound = FailureInterceptor().intercept_activity(Body(end))
            inbound.init(self.outbound)
            return await inbound.execute_activity(
                ExecuteActivityInput(fn=print, args=[], executor=None, headers={})
            )

        return await self.environment.run(attempt)

    async def fail(self, error: BaseException) -> ApplicationError:
        """Run a body that raises."""

        def end() -> None:
            raise error

        with pytest.raises(ApplicationError) as caught:
            await self.run(end)
        return caught.value

    @property
    def told(self) -> PastAttempts:
        """What the last heartbeat told the next attempt."""
        told: PastAttempts = self.outbound.sent[-1][0]
        return told


@pytest.mark.parametrize(
    ("error", "failure_type", "is_final"),
    [
        (EngineUnavailable("away"), "EngineUnavailable", False),
        (ArtifactDamaged("gone"), "ArtifactDamaged", False),
        (TaskError("no cases"), "TaskError", True),
        (UserError("no such engine"), "UserError", True),
        (ZeroDivisionError("/ 0"), "ZeroDivisionError", False),
        (ApplicationError("big", type="PayloadsTooLarge"), "PayloadsTooLarge", True),
        (ApplicationError("no", type="Other", non_retryable=True), "Other", True),
    ],
)
async def test_error_gets_its_type_and_says_whether_a_retry_can_help(
    error: Exception, failure_type: str, is_final: bool
) -> None:
    failure = await Attempt().fail(error)
    assert (failure.type, failure.non_retryable) == (failure_type, is_final)
    assert str(error) in str(failure)


async def test_record_that_does_not_fit_its_contract_is_a_contract_error() -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        PastAttempts.model_validate({"num_ended": "many"})
    failure = await Attempt().fail(refused.value)
    assert (failure.type, failure.non_retryable) == ("ContractError", True)


async def test_damaged_artifact_is_final_with_the_third_damage_not_the_third_attempt() -> None:
    others = PastAttempts(num_failed={"EngineUnavailable": 30, "ArtifactDamaged": 1}, num_ended=9)
    assert not (await Attempt(41, others).fail(ArtifactDamaged("gone"))).non_retryable
    twice = PastAttempts(num_failed={"ArtifactDamaged": 2})
    assert (await Attempt(3, twice).fail(ArtifactDamaged("gone"))).non_retryable


async def test_failure_is_told_to_the_next_attempt_with_those_before_it() -> None:
    attempt = Attempt(3, PastAttempts(num_failed={"StoreError": 1}, num_ended=1))
    await attempt.fail(StoreError("full"))
    assert attempt.told == PastAttempts(num_failed={"StoreError": 2}, num_ended=1)


async def test_heartbeats_of_the_body_do_not_make_earlier_failures_forgotten() -> None:
    past = PastAttempts(num_failed={"StoreError": 1})
    attempt = Attempt(2, past)
    assert await attempt.run(lambda: "done") == "done"
    assert attempt.outbound.sent == [(past, "at work")]


async def test_pause_before_the_next_attempt_grows_with_failures_of_the_type() -> None:
    first = await Attempt().fail(StoreError("full"))
    later = await Attempt(5, PastAttempts(num_failed={"StoreError": 4})).fail(StoreError("full"))
    assert first.next_retry_delay is not None
    assert later.next_retry_delay is not None
    # 1 s and 16 s, each with a fifth more or less
    assert 0.8 <= first.next_retry_delay.total_seconds() <= 1.2
    assert 12.8 <= later.next_retry_delay.total_seconds() <= 19.2


@pytest.mark.parametrize("reason", ["worker_shutdown", "paused", "timed_out", "cancel_requested"])
@pytest.mark.parametrize("error", [asyncio.CancelledError(), EngineUnavailable("socket closed")])
async def test_attempt_that_is_ended_from_outside_spends_no_budget(
    reason: str, error: BaseException
) -> None:
    attempt = Attempt(2, PastAttempts(num_failed={"StoreError": 1}))

    def end() -> None:
        attempt.environment.cancel(ActivityCancellationDetails(**{reason: True}))
        raise error

    with pytest.raises(type(error)):
        await attempt.run(end)
    assert attempt.told == PastAttempts(num_failed={"StoreError": 1}, num_ended=1)


async def test_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    assert (await Attempt().fail(asyncio.CancelledError())).type == "CancelledError"


async def test_work_whose_attempts_are_lost_again_and_again_is_given_up_unbegun() -> None:
    attempt = Attempt(22, PastAttempts(num_ended=1))
    failure = await attempt.fail(AssertionError("the body ran"))
    assert (failure.type, failure.non_retryable) == ("Poisoned", True)
    assert "20 attempts at unknown ended without an answer" in str(failure)
    assert attempt.outbound.sent == []


async def test_work_that_is_about_to_be_given_up_has_one_more_attempt() -> None:
    assert await Attempt(21, PastAttempts(num_ended=1)).run(lambda: "done") == "done"


async def test_work_that_was_reset_by_hand_begins_anew() -> None:
    attempt = Attempt(1, PastAttempts(num_failed={"ArtifactDamaged": 2}))
    assert not (await attempt.fail(ArtifactDamaged("gone"))).non_retryable


async def test_what_another_version_told_is_not_held_against_the_work() -> None:
    attempt = Attempt(30, {"unheard_of": 1})
    await attempt.fail(StoreError("full"))
    assert attempt.told == PastAttempts(num_failed={"StoreError": 1}, num_ended=29)
