"""How many episodes a group begins, so that it is whole in spite of failures."""

from collections import Counter
from collections.abc import Iterable

from loopwright.contracts.episodes import EpisodeResult

MAX_FOR_TASK = 1
"""Replacements for what a task failed: another attempt would most likely meet it again."""


def num_wanted(ended: Iterable[EpisodeResult], *, size: int, max_replacements: int) -> int:
    """Give the number of episodes that a group of G = ``size`` is to begin in all.

    Each replacement is a fresh episode with the next free index. What the platform failed is
    replaced ``max_replacements`` times, what the task failed once; what was cancelled is not, nor
    what failed for its configuration. With a budget of 0 nothing is replaced at all.

    Args:
        ended: the episodes that have ended so far, replaced ones included.
        size: number of episodes asked for.
        max_replacements: replacements for the platform's failures.
    """
    failures = [episode.failure for episode in ended if episode.status == "failed"]
    failed = Counter(failure.owner for failure in failures if failure is not None)
    for_platform = min(failed["platform"], max_replacements)
    for_task = min(failed["task"], MAX_FOR_TASK, max_replacements)
    return size + for_platform + for_task
