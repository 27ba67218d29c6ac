"""Which groups may enter a batch, and who is behind the loss of one that may not."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.contracts.episodes import EpisodeResult
from loopwright.contracts.failures import row_of
from loopwright.contracts.groups import DroppedBy


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a group may enter a batch: it may where there is no reason against it."""

    reason: str = ""
    dropped_by: DroppedBy = ""


def decide(episodes: Sequence[EpisodeResult], *, size: int) -> Admission:
    """Decide on a group of G = ``size``, from all the episodes that it began.

    A group needs enough valid rewards, or the missing ones bias its baseline, and two different
    rewards, or it teaches nothing.
    """
    valid = [episode.reward for episode in episodes if episode.reward is not None]
    if len(valid) < min_valid(size):
        reason = f"too few valid episodes: {len(valid)} of {size}, {min_valid(size)} needed"
        return Admission(f"{reason}{_failure_types(episodes)}", _culprit(episodes))
    if min(valid) == max(valid):
        return Admission(f"no signal: every reward is {valid[0]:g}", "no_signal")
    return Admission()


def min_valid(size: int) -> int:
    """Give the least number of valid episodes of a group of G = ``size``: 3/4 of it, but two."""
    return max(2, math.ceil(0.75 * size))


def _culprit(episodes: Sequence[EpisodeResult]) -> DroppedBy:
    """Blame who failed most of them; a tie is the task's, so that its faults stay loud."""
    failed = Counter(_cause(episode) for episode in episodes if episode.reward is None)
    order: tuple[DroppedBy, ...] = ("data", "infra", "")
    return max(order, key=lambda cause: failed[cause]) if failed else ""


def _cause(episode: EpisodeResult) -> DroppedBy:
    """Name who is behind an episode without a reward; one that was graded had no verdict."""
    if episode.status == "cancelled":
        return ""
    limit = row_of(episode.failure.type).counts_towards if episode.failure else "data"
    return "" if limit == "none" else limit


def _failure_types(episodes: Sequence[EpisodeResult]) -> str:
    types = Counter(episode.failure.type for episode in episodes if episode.failure is not None)
    listed = ", ".join(f"{count} x {name}" for name, count in sorted(types.items()))
    return f" ({listed})" if listed else ""
