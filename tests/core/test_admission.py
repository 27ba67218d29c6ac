"""Which groups may enter a batch, and who is blamed for the others."""

import pytest

from loopwright.contracts.episodes import EpisodeResult
from loopwright.core import admission
from tests.core.episodes import cancelled, failed, graded

PLATFORM, TASK, USER = failed("StoreError"), failed("TaskError"), failed("UserError")
BUG = failed("ZeroDivisionError")
PASS, FAIL, UNGRADED = graded(1.0), graded(0.0), graded(None)


@pytest.mark.parametrize(
    ("episodes", "reason"),
    [
        ([FAIL, PASS, FAIL, PASS], ""),
        ([FAIL, PASS, PASS, UNGRADED], ""),
        ([FAIL, PASS, UNGRADED, UNGRADED], "too few valid"),
        ([PASS, UNGRADED], "too few valid"),
        ([PASS], "too few valid"),
        ([PASS, PASS, PASS, PASS], "no signal"),
        ([UNGRADED, UNGRADED], "too few valid"),
    ],
)
def test_group_needs_enough_valid_and_different_rewards(
    episodes: list[EpisodeResult], reason: str
) -> None:
    found = admission.decide(episodes, size=len(episodes)).reason
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(("size", "needed"), [(1, 2), (2, 2), (3, 3), (4, 3), (8, 6), (10, 8)])
def test_three_quarters_of_a_group_must_be_valid_but_two(size: int, needed: int) -> None:
    assert admission.min_valid(size) == needed


def test_replaced_episodes_raise_no_bar() -> None:
    # 3 of 4 are needed, however many episodes failed on the way.
    assert not admission.decide([FAIL, PASS, *[PLATFORM] * 5, PASS], size=4).reason


@pytest.mark.parametrize(
    ("episodes", "dropped_by"),
    [
        ([FAIL, PASS, PASS, PASS], ""),
        ([FAIL, FAIL, FAIL, FAIL], "no_signal"),
        ([FAIL, PASS, PLATFORM, PLATFORM], "infra"),
        ([FAIL, PASS, TASK, TASK], "data"),
        ([FAIL, PASS, UNGRADED, UNGRADED], "data"),
        ([FAIL, PASS, USER, USER], "data"),
        ([FAIL, PASS, BUG, BUG], "data"),
        ([FAIL, PASS, PLATFORM, TASK], "data"),
        ([FAIL, PLATFORM, PLATFORM, TASK], "infra"),
        ([FAIL, PASS, cancelled(), cancelled()], ""),
        ([FAIL, PASS, PLATFORM, cancelled()], "infra"),
        ([FAIL, cancelled(), cancelled(), TASK], ""),
    ],
)
def test_group_is_dropped_by_who_failed_most_of_its_episodes(
    episodes: list[EpisodeResult], dropped_by: str
) -> None:
    assert admission.decide(episodes, size=4).dropped_by == dropped_by


def test_reason_counts_the_failures_by_type() -> None:
    episodes = [PASS, PLATFORM, PLATFORM, BUG]
    reason = admission.decide(episodes, size=4).reason
    assert (
        reason == "too few valid episodes: 1 of 4, 3 needed (2 x StoreError, 1 x ZeroDivisionError)"
    )
