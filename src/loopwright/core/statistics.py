"""Means with uncertainty, clustered by task."""

import math
from collections.abc import Sequence

from loopwright.contracts.evaluations import Estimate


def clustered_estimate(values_by_task: Sequence[Sequence[float]]) -> Estimate | None:
    """Estimate the mean over all values, with a 95 % interval clustered by task.

    SE = sqrt(C / (C - 1) * sum over tasks of (sum of deviations)^2) / N, for C tasks with N values
    in all; the interval takes Student's t with C - 1 degrees of freedom. One task
    alone has no interval. No value gives None.
    """
    clusters = [values for values in values_by_task if values]
    count = sum(len(values) for values in clusters)
    if count == 0:
        return None
    mean = math.fsum(value for values in clusters for value in values) / count
    if len(clusters) < 2:
        return Estimate(mean=mean, low=None, high=None)
    squares = math.fsum(math.fsum(v - mean for v in values) ** 2 for values in clusters)
    error = math.sqrt(len(clusters) / (len(clusters) - 1) * squares) / count
    margin = student_t_quantile(0.975, len(clusters) - 1) * error
    return Estimate(mean=mean, low=mean - margin, high=mean + margin)


def student_t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t, by bisection, to 1e-9.

    Args:
        probability: in [0.5, 1).
        degrees: degrees of freedom, >= 1.
    """
    low, high = 0.0, 1.0
    while _student_t_cdf(high, degrees) < probability:
        high *= 2
    while high - low > 1e-9 * max(1.0, high):
        middle = (low + high) / 2
        if _student_t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_t_cdf(t: float, degrees: int) -> float:
    """Sum the finite series of Abramowitz and Stegun 26.7.3 and 26.7.4, t >= 0."""
    theta = math.atan(t / math.sqrt(degrees))
    cos_squared = math.cos(theta) ** 2
    is_odd = degrees % 2 == 1
    term, total = 1.0, 1.0
    for k in range(3 if is_odd else 2, degrees - 1, 2):
        term *= cos_squared * (k - 1) / k
        total += term
    if is_odd:
        extra = math.sin(theta) * math.cos(theta) * total if degrees > 1 else 0.0
        return 0.5 + (theta + extra) / math.pi
    return 0.5 + math.sin(theta) * total / 2
