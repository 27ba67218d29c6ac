"""Whether a loop has done the iterations that it was asked for."""

from collections.abc import Sequence

from loopwright.contracts.iterations import IterationResult

KEPT_ROWS = 8
"""Results that are told along."""


def results_of(
    results: Sequence[IterationResult], *, num_iterations: int, last: int
) -> tuple[IterationResult, ...] | None:
    """Give the newest results among those asked for; None while some are to come.

    Args:
        results: the newest of the loop, in their order.
        num_iterations: how many were asked for.
        last: number of the last of them; one that was stopped is not done.
    """
    done = [row for row in results if row.outcome != "stopped"]
    if not done or done[-1].index < last:
        return None
    return tuple(row for row in done if last - num_iterations < row.index <= last)[-KEPT_ROWS:]


def num_missing(results: Sequence[IterationResult], *, num_iterations: int, last: int) -> int:
    """Count the iterations asked for that are not done."""
    newest = max((row.index for row in results if row.outcome != "stopped"), default=0)
    return min(max(last - newest, 0), num_iterations)
