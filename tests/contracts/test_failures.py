"""The table of failures has a row for each error, and one for those that nobody foresaw."""

import pytest

from loopwright.contracts import failures
from loopwright.contracts.failures import (
    FAILURES,
    NON_RETRYABLE_TYPES,
    UNKNOWN,
    LoopError,
    StoreError,
    row_of,
    type_of,
)

ERRORS = [
    each
    for each in vars(failures).values()
    if isinstance(each, type) and issubclass(each, LoopError) and each is not LoopError
]


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_has_a_row_of_its_own(error: type[LoopError]) -> None:
    assert error.__name__ in FAILURES


def test_error_without_a_row_takes_that_of_its_parent() -> None:
    class BucketFull(StoreError):
        """More of the same."""

    assert type_of(BucketFull("full")) == "StoreError"
    assert type_of(ZeroDivisionError()) == "ZeroDivisionError"


def test_failure_that_nobody_foresaw_is_the_platforms_and_counts_as_a_tasks() -> None:
    assert row_of("ZeroDivisionError") is UNKNOWN
    assert (UNKNOWN.owner, UNKNOWN.counts_towards) == ("platform", "data")


def test_what_no_attempt_could_mend_is_not_retried() -> None:
    assert {"TaskError", "UserError", "ContractError", "PayloadsTooLarge"} < set(
        NON_RETRYABLE_TYPES
    )
    assert not {"EngineUnavailable", "StoreError", "ArtifactDamaged"} & set(NON_RETRYABLE_TYPES)


def test_trouble_of_hosts_outlasts_an_hour_and_counts_as_theirs() -> None:
    for name in ("EngineUnavailable", "StoreError"):
        row = FAILURES[name]
        assert row.budget * row.longest_pause_seconds > 3600
        assert (row.owner, row.counts_towards) == ("platform", "infra")
