"""Losses of groups that an iteration bears, and those that end the loop."""

import pytest

from loopwright.contracts.configs import IterationConfig
from loopwright.contracts.groups import DropCounts, DroppedBy, GroupResult
from loopwright.contracts.tasks import TaskRef
from loopwright.core import run_limits


def group(dropped_by: DroppedBy = "", *, is_admitted: bool = False) -> GroupResult:
    return GroupResult(
        task=TaskRef(environment="e", task_id="t"),
        num_episodes=4,
        num_valid=4,
        num_passed=0,
        num_first_passed=0,
        mean_reward=None,
        num_completion_tokens=0,
        is_admitted=is_admitted,
        reason="",
        dropped_by=dropped_by,
        manifest=None,
    )


INFRA, DATA, SAME, CANCELLED = group("infra"), group("data"), group("no_signal"), group()
ADMITTED = group(is_admitted=True)


@pytest.mark.parametrize(
    ("groups", "skipped", "in_a_row"),
    [
        ([], 2, 3),
        ([INFRA, INFRA], 2, 5),
        ([INFRA, ADMITTED], 2, 0),
        ([SAME, INFRA], 2, 1),
        ([DATA, INFRA, DATA], 4, 4),
        ([CANCELLED], 2, 3),
    ],
)
def test_drops_of_the_platform_are_counted_in_a_row_and_those_of_tasks_for_ever(
    groups: list[GroupResult], skipped: int, in_a_row: int
) -> None:
    before = DropCounts(num_skipped_tasks=2, num_infra_drops_in_a_row=3)
    after = DropCounts(num_skipped_tasks=skipped, num_infra_drops_in_a_row=in_a_row)
    assert run_limits.count_drops(before, groups) == after


LIMITS = IterationConfig(max_skipped_tasks=5, max_infra_drops_in_a_row=2)


@pytest.mark.parametrize(
    ("skipped", "in_a_row", "said"),
    [
        (5, 2, ""),
        (6, 0, "6 groups were lost to their own tasks; iteration.max_skipped_tasks is 5"),
        (0, 3, "the platform lost 3 groups in a row; iteration.max_infra_drops_in_a_row is 2"),
    ],
)
def test_loop_ends_beyond_a_limit_and_names_it(skipped: int, in_a_row: int, said: str) -> None:
    counts = DropCounts(num_skipped_tasks=skipped, num_infra_drops_in_a_row=in_a_row)
    found = run_limits.limit_passed(counts, LIMITS)
    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("num_tasks", "share", "needed"),
    [(24, 0.9, 22), (10, 0.9, 9), (10, 0.7, 7), (1, 0.9, 1), (8, 1.0, 8), (3, 0.01, 1)],
)
def test_iteration_needs_a_share_of_its_groups(num_tasks: int, share: float, needed: int) -> None:
    config = IterationConfig(num_tasks=num_tasks, min_group_share=share)
    assert run_limits.min_groups(config) == needed


@pytest.mark.parametrize(
    ("each", "is_scored"),
    [(ADMITTED, True), (SAME, True), (INFRA, False), (DATA, False), (CANCELLED, False)],
)
def test_group_without_a_signal_is_scored_all_the_same(each: GroupResult, is_scored: bool) -> None:
    assert run_limits.is_scored(each) == is_scored
