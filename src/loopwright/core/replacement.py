"""How many episodes a group begins, so that it is whole in spite of failures."""

from collections import Counter
from collections.abc import Iterable

from loopwright.contracts.episodes import EpisodeResult
from loopwright.contracts.failures import row_of

MAX_FOR_TASK = 1
"""Replacements for failures that count towards the limit on data."""


def num_wanted(ended: Iterable[EpisodeResult], *, size: int, max_replacements: int) -> int:
    """Give the number of episodes that a group of G = ``size`` is to begin in all.

    Each replacement is a fresh episode with the next free index. What the hosts failed is replaced
    ``max_replacements`` times, what another episode of the task would most likely meet again once;
    what was cancelled is not, nor what failed for its configuration. With a budget of 0 nothing is
    replaced at all.

    Args:
        ended: the episodes that have ended so far, replaced ones included.
        size: number of episodes asked for.
        max_replacements: replacements for the failures of hosts.
    """
    failures = [episode.failure for episode in ended if episode.status == "failed"]
    rows = [row_of(failure.type) for failure in failures if failure is not None]
    failed = Counter(row.counts_towards for row in rows if row.owner != "user")
    for_hosts = min(failed["infra"], max_replacements)
    for_task = min(failed["data"], MAX_FOR_TASK, max_replacements)
    return size + for_hosts + for_task
