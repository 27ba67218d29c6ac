"""Numbers of a group from its episodes, and of an iteration or evaluation from its groups."""

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.episodes import EpisodeResult, Verdict
from loopwright.contracts.evaluations import Estimate
from loopwright.contracts.groups import GroupResult
from loopwright.contracts.tasks import TaskRef
from loopwright.core.admission import Admission
from loopwright.core.statistics import clustered_estimate


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """Sums and rates over groups; a rate of nothing is None."""

    num_episodes: int
    """Episodes asked for, and those that replaced others."""
    num_replaced: int
    """Recorded episodes that failed and were replaced."""
    num_failed: int
    """Recorded episodes without a reward, cancelled ones left out."""
    num_cancelled: int
    num_lost: int
    """Episodes without a recorded outcome."""
    num_admitted: int
    pass_rate: float | None
    first_pass_rate: float | None
    mean_reward: float | None
    num_completion_tokens: int


def of_group(
    task: TaskRef,
    episodes: Sequence[EpisodeResult],
    *,
    size: int,
    admission: Admission,
    manifest: ArtifactRef | None = None,
) -> GroupResult:
    """Count the episodes of one group.

    Args:
        task: what they attempted.
        episodes: all that it began: one for each of the G that were asked for, then replacements.
        size: number of episodes asked for, G.
        admission: whether the group may enter a batch.
        manifest: its stored record, if there is one.
    """
    valid = [episode for episode in episodes if episode.reward is not None]
    rewards = sum(episode.reward or 0.0 for episode in valid)
    return GroupResult(
        task=task,
        num_episodes=len(episodes),
        num_valid=len(valid),
        num_passed=sum(episode.verdict == Verdict.PASS for episode in valid),
        num_first_passed=sum(episode.first_answer_passed for episode in valid),
        num_cancelled=sum(episode.status == "cancelled" for episode in episodes),
        num_replaced=len(episodes) - size,
        mean_reward=_ratio(rewards, len(valid)),
        num_completion_tokens=sum(episode.num_completion_tokens for episode in episodes),
        oldest_version=min(
            (each.policy_span.oldest for each in episodes if each.policy_span), default=None
        ),
        is_admitted=not admission.reason,
        reason=admission.reason,
        dropped_by=admission.dropped_by,
        manifest=manifest,
    )


def total(groups: Sequence[GroupResult], *, num_asked: int) -> GroupTotals:
    """Add up groups of which ``num_asked`` episodes were asked in all.

    Parked groups are none of them: they count where they end.
    """
    recorded = sum(group.num_episodes for group in groups)
    valid = sum(group.num_valid for group in groups)
    cancelled = sum(group.num_cancelled for group in groups)
    replaced = sum(group.num_replaced for group in groups)
    rewards = sum((group.mean_reward or 0.0) * group.num_valid for group in groups)
    return GroupTotals(
        num_episodes=num_asked + replaced,
        num_replaced=replaced,
        num_failed=recorded - valid - cancelled,
        num_cancelled=cancelled,
        num_lost=num_asked + replaced - recorded,
        num_admitted=sum(group.is_admitted for group in groups),
        pass_rate=_ratio(sum(group.num_passed for group in groups), valid),
        first_pass_rate=_ratio(sum(group.num_first_passed for group in groups), valid),
        mean_reward=_ratio(rewards, valid),
        num_completion_tokens=sum(group.num_completion_tokens for group in groups),
    )


def num_asked(groups: Sequence[GroupResult], *, size: int) -> int:
    """Count the episodes that groups were asked for; one that recorded none was asked for size."""
    return sum(group.num_episodes - group.num_replaced or size for group in groups)


def estimate_share(counts: Sequence[tuple[int, int]]) -> Estimate | None:
    """Estimate a share from (successes, valid episodes) of each task, clustered by task.

    The interval ends where shares do, at 0 and 1.
    """
    found = clustered_estimate([[1.0] * hits + [0.0] * (of - hits) for hits, of in counts])
    if found is None or found.low is None or found.high is None:
        return found
    return Estimate(mean=found.mean, low=max(0.0, found.low), high=min(1.0, found.high))


def estimate_mean(means: Sequence[tuple[float | None, int]]) -> Estimate | None:
    """Estimate a mean from (mean, valid episodes) of each task, clustered by task."""
    return clustered_estimate([[mean] * of for mean, of in means if mean is not None])


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None
