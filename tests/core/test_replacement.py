"""How many episodes a group begins in spite of failures."""

import pytest

from loopwright.contracts.episodes import EpisodeResult
from loopwright.core import replacement
from tests.core.episodes import cancelled, failed, graded

PLATFORM, TASK, USER = failed("StoreError"), failed("TaskError"), failed("UserError")
POISON, BUG, GOOD = failed("Poisoned"), failed("ZeroDivisionError"), graded(1.0)


@pytest.mark.parametrize(
    ("ended", "num_wanted"),
    [
        ([], 8),
        ([GOOD] * 8, 8),
        ([GOOD, PLATFORM], 9),
        ([PLATFORM] * 3, 11),
        ([PLATFORM] * 4, 11),
        ([TASK], 9),
        ([TASK] * 8, 9),
        ([PLATFORM, PLATFORM, TASK], 11),
        ([PLATFORM] * 5 + [TASK] * 2, 12),
        ([USER], 8),
        ([POISON] * 3, 9),
        ([BUG] * 3, 9),
        ([cancelled()] * 2, 8),
        ([graded(None)], 8),
    ],
)
def test_failures_of_hosts_and_of_tasks_are_replaced_within_their_own_budgets(
    ended: list[EpisodeResult], num_wanted: int
) -> None:
    assert replacement.num_wanted(ended, size=8, max_replacements=3) == num_wanted


def test_budget_of_nothing_replaces_nothing() -> None:
    assert replacement.num_wanted([PLATFORM, TASK], size=8, max_replacements=0) == 8
