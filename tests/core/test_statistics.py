"""Clustered intervals against the textbook."""

import math

import pytest

from loopwright.core.statistics import clustered_estimate, student_t_quantile


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.30265), (3, 3.18245), (10, 2.22814), (127, 1.97882), (1000, 1.96234)],
)
def test_quantile_of_students_t_matches_printed_tables(degrees: int, quantile: float) -> None:
    assert student_t_quantile(0.975, degrees) == pytest.approx(quantile, abs=5e-5)


def test_interval_is_clustered_by_task() -> None:
    # Two tasks of two equal values: mean 0.5, sums of deviations 1 and -1,
    # SE = sqrt(2 / 1 * 2) / 4 = 0.5, t(1) = 12.7062.
    estimate = clustered_estimate([[1.0, 1.0], [0.0, 0.0]])
    assert estimate is not None
    assert estimate.mean == 0.5
    assert estimate.high == pytest.approx(0.5 + 12.7062 * 0.5, abs=1e-3)


def test_single_values_give_the_usual_interval() -> None:
    values = [0.1, 0.4, 0.7, 1.0]
    mean = sum(values) / 4
    error = math.sqrt(sum((v - mean) ** 2 for v in values) / 3 / 4)
    estimate = clustered_estimate([[v] for v in values])
    assert estimate is not None
    assert estimate.low == pytest.approx(mean - 3.18245 * error, abs=1e-5)


def test_one_task_alone_has_no_interval_and_nothing_has_no_mean() -> None:
    estimate = clustered_estimate([[1.0, 0.0], []])
    assert estimate is not None
    assert (estimate.mean, estimate.low, estimate.high) == (0.5, None, None)
    assert clustered_estimate([[], []]) is None
