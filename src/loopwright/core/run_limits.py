"""Which losses of groups an iteration bears, and which end the loop."""

import math
from collections.abc import Iterable

from loopwright.contracts.configs import MAX_GROUPS, IterationConfig
from loopwright.contracts.groups import DropCounts, GroupResult

_ROUNDING = 1e-9


def min_groups(iteration: IterationConfig) -> int:
    """Give the least number of scored groups from which an iteration may learn."""
    return math.ceil(iteration.min_group_share * iteration.num_tasks - _ROUNDING)


def num_begun(iteration: IterationConfig) -> int:
    """Give the number of groups that an iteration begins with."""
    return iteration.num_tasks + iteration.spare_groups


def num_spares(iteration: IterationConfig) -> int:
    """Give the number of tasks kept ready for groups that are lost: a quarter, at least four."""
    return min(max(4, iteration.num_tasks // 4), MAX_GROUPS - num_begun(iteration))


def followed(begun: IterationConfig, told: IterationConfig) -> IterationConfig:
    """Give what an iteration that has begun follows when its loop is told otherwise.

    It has drawn its tasks, and only one that may lag behind can hand groups on.
    """
    kept: dict[str, object] = {"num_tasks": begun.num_tasks}
    if told.stragglers == "carry" and begun.max_staleness == 0:
        kept["stragglers"] = begun.stragglers
    return told.model_copy(update=kept)


def is_scored(group: GroupResult) -> bool:
    """Tell whether a group has the episodes it needs, whatever their rewards say."""
    return group.is_admitted or group.dropped_by == "no_signal"


def count_drops(counts: DropCounts, groups: Iterable[GroupResult]) -> DropCounts:
    """Count further groups, in the order in which they ended.

    A scored group shows that the platform works. One that its task lost, that was cancelled or
    is parked says nothing of the platform.
    """
    skipped, in_a_row = counts.num_skipped_tasks, counts.num_infra_drops_in_a_row
    for group in groups:
        skipped += group.dropped_by == "data"
        in_a_row = 0 if is_scored(group) else in_a_row + (group.dropped_by == "infra")
    return DropCounts(num_skipped_tasks=skipped, num_infra_drops_in_a_row=in_a_row)


def limit_passed(counts: DropCounts, iteration: IterationConfig) -> str:
    """Say which limit of a loop its losses have passed; empty while they are within both."""
    if counts.num_infra_drops_in_a_row > iteration.max_infra_drops_in_a_row:
        return (
            f"the platform lost {counts.num_infra_drops_in_a_row} groups in a row; "
            f"iteration.max_infra_drops_in_a_row is {iteration.max_infra_drops_in_a_row}: mend "
            f"what their failures name, then start the loop again"
        )
    if counts.num_skipped_tasks > iteration.max_skipped_tasks:
        return (
            f"{counts.num_skipped_tasks} groups were lost to their own tasks; "
            f"iteration.max_skipped_tasks is {iteration.max_skipped_tasks}: mend the tasks or the "
            f"environment that their failures name, or allow more"
        )
    return ""
