"""Counts of groups and episodes by state."""

from collections import Counter
from collections.abc import Iterable

from loopwright.contracts.groups import GroupResult


def group_state(group: GroupResult) -> str:
    """Name the state in which a group ended."""
    if group.parked is not None:
        return "parked"
    if group.is_admitted:
        return "admitted"
    return {"no_signal": "no signal", "": "cancelled"}.get(group.dropped_by, "lost")


def count_groups(
    ended: Iterable[GroupResult], *, num_waiting: int, num_open: int
) -> dict[str, int]:
    """Count groups by state, those first that have not ended."""
    counts = Counter(map(group_state, ended))
    states = ("admitted", "no signal", "lost", "parked", "cancelled")
    return {"waiting": num_waiting, "under way": num_open} | {each: counts[each] for each in states}


def count_episodes(ended: Iterable[GroupResult]) -> dict[str, int]:
    """Count the episodes of groups that have ended; parked groups count where they end."""
    groups = [group for group in ended if group.parked is None]
    valid = sum(group.num_valid for group in groups)
    cancelled = sum(group.num_cancelled for group in groups)
    recorded = sum(group.num_episodes for group in groups)
    return {
        "with reward": valid,
        "failed": recorded - valid - cancelled,
        "cancelled": cancelled,
    }
