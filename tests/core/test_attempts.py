"""Budgets of attempts, by type of failure."""

import pytest

from loopwright.contracts.attempts import PastAttempts
from loopwright.contracts.failures import FAILURES, MAX_LOST_ATTEMPTS, UNKNOWN
from loopwright.core import attempts


def failed(**num_failed: int) -> PastAttempts:
    return PastAttempts(num_failed=num_failed)


@pytest.mark.parametrize(
    ("past", "is_spent"),
    [
        (failed(ArtifactDamaged=2), False),
        (failed(ArtifactDamaged=3), True),
        (failed(ArtifactDamaged=2, EngineUnavailable=100, StoreError=100), False),
        (PastAttempts(num_failed={"ArtifactDamaged": 2}, num_ended=1000), False),
    ],
)
def test_budget_is_spent_by_failures_of_its_own_type_alone(
    past: PastAttempts, is_spent: bool
) -> None:
    assert FAILURES["ArtifactDamaged"].budget == 3
    assert attempts.is_spent(past, "ArtifactDamaged") is is_spent


def test_failure_is_counted_beside_those_before_it() -> None:
    past = failed(StoreError=1)
    for name in ("StoreError", "EngineUnavailable"):
        past = attempts.with_failure(past, name)
    assert past == failed(StoreError=2, EngineUnavailable=1)


def test_failure_that_nobody_foresaw_has_few_attempts() -> None:
    assert not attempts.is_spent(failed(ZeroDivisionError=UNKNOWN.budget - 1), "ZeroDivisionError")
    assert attempts.is_spent(failed(ZeroDivisionError=UNKNOWN.budget), "ZeroDivisionError")


def test_pauses_double_up_to_the_longest_and_start_anew_with_another_type() -> None:
    # 1, 2, 4, 8, 16, then 30 seconds
    numbers = (1, 2, 5, 6, 250)
    pauses = [attempts.pause_seconds(failed(StoreError=n), "StoreError") for n in numbers]
    assert pauses == [1, 2, 16, 30, 30]
    assert attempts.pause_seconds(failed(StoreError=9, EngineUnavailable=1), "StoreError") == 30
    assert attempts.pause_seconds(failed(StoreError=9, RootMissing=1), "RootMissing") == 1


def test_attempts_that_told_nothing_are_lost() -> None:
    past = PastAttempts(num_failed={"StoreError": 2, "RootMissing": 1}, num_ended=3)
    assert attempts.num_lost(past, attempt=7) == 0
    assert attempts.num_lost(past, attempt=9) == 2


def test_first_attempt_of_an_activity_that_was_reset_has_lost_none() -> None:
    assert attempts.num_lost(failed(StoreError=5), attempt=1) == 0


def test_work_is_poison_after_so_many_lost_attempts_whatever_else_there_was() -> None:
    past = PastAttempts(num_failed={"StoreError": 40}, num_ended=50)
    told = 40 + 50
    assert not attempts.is_poison(past, attempt=told + MAX_LOST_ATTEMPTS)
    assert attempts.is_poison(past, attempt=told + MAX_LOST_ATTEMPTS + 1)
