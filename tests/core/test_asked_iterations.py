"""Whether a loop has done what it was asked for."""

import pytest

from loopwright.contracts.iterations import IterationOutcome, IterationResult
from loopwright.core.asked_iterations import KEPT_ROWS, num_missing, results_of


def row(index: int, outcome: IterationOutcome = "trained") -> IterationResult:
    return IterationResult(
        index=index, outcome=outcome, policy_version=index, checkpoint=None, num_episodes=1
    )


def test_iterations_asked_for_are_told_when_the_last_of_them_is_done() -> None:
    rows = [row(index) for index in range(1, 8)]
    found = results_of(rows, num_iterations=2, last=5)
    assert [each.index for each in found or ()] == [4, 5]


@pytest.mark.parametrize("rows", [[], [row(1)], [row(1), row(2, "stopped")]])
def test_iterations_that_are_to_come_or_were_stopped_are_not_done(
    rows: list[IterationResult],
) -> None:
    assert results_of(rows, num_iterations=2, last=2) is None


def test_iteration_without_a_signal_is_done() -> None:
    assert results_of([row(1, "skipped_no_signal")], num_iterations=1, last=1) is not None


def test_results_that_the_loop_no_longer_carries_are_left_out() -> None:
    assert results_of([row(9)], num_iterations=1, last=3) == ()


def test_newest_results_only_are_told() -> None:
    rows = [row(index) for index in range(1, 31)]
    found = results_of(rows, num_iterations=30, last=30)
    assert [each.index for each in found or ()] == list(range(31 - KEPT_ROWS, 31))


@pytest.mark.parametrize(("done", "missing"), [(0, 3), (3, 3), (4, 2), (6, 0)])
def test_iterations_that_are_missing_are_counted_among_those_asked_for(
    done: int, missing: int
) -> None:
    rows = [row(index) for index in range(1, done + 1)]
    assert num_missing(rows, num_iterations=3, last=6) == missing
