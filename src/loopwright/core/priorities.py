"""Which work is dispatched first, and how loops share workers where it is equally urgent.

Temporal hands out what has the smaller key before all that has a greater one, and among equal keys
each fairness key in proportion to its weight. So keys tell apart only what is few and soon over: a
loop that trains for days must not keep another waiting, and shares with it by weight.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

from loopwright.contracts.configs import EnvironmentConfig, LoopConfig
from loopwright.contracts.episodes import EpisodeKind, Priority

Phase = Literal["waited_for", "ahead"]
"""Whether the trainer idles until the work is done, or is still busy with earlier work."""

EVALUATION, LATE, TRAINING, AUDIT = 1, 2, 3, 4
"""Keys. A loop stands still while it evaluates; nothing ever waits for an audit."""

AHEAD_SHARE = 0.5
"""Of its weight, what a loop keeps while its trainer is busy: others' trainers may be idle."""

_MAX_KEY_BYTES = 64
_MIN_WEIGHT, _MAX_WEIGHT = 0.001, 1000.0


@dataclass(frozen=True, slots=True)
class Work:
    """What is known of a group, or of one of its episodes, when it is dispatched."""

    kind: EpisodeKind
    environment: str
    phase: Phase = "waited_for"
    versions_left: int | None = None
    """Publications that its tokens bear after the next update; None where they are yet to come.

    A carried group that bears none is learned from in the next update, or never.
    """
    is_straggler: bool = False
    """Whether its group waits for it and little else: replacements."""
    curriculum_weight: float = 1.0
    """What it is worth, relative to the usual task."""


def of(work: Work, *, loop_id: str, config: LoopConfig) -> Priority:
    """Decide the priority of work.

    The weight is the loop's, times the share of the environment among the loop's, times the
    curriculum's; half of that for work ahead. Work of one fairness key keeps the order in which it
    was dispatched.

    Example:
        A loop of weight 3 with environments of weights 1 and 2, collecting ahead of its trainer:
        training in the second has key 3 and weight 3 * 2/3 * 0.5 = 1.
    """
    return Priority(
        key=_key(work),
        fairness_key=_fairness_key(loop_id, work.environment, config),
        fairness_weight=min(max(_weight(work, config), _MIN_WEIGHT), _MAX_WEIGHT),
    )


def hastened(priority: Priority) -> Priority:
    """Give the priority of the same work once little else is waited for."""
    return priority.model_copy(update={"key": min(priority.key, LATE)})


def _key(work: Work) -> int:
    if work.kind == "evaluation":
        return EVALUATION
    if work.kind == "audit":
        return AUDIT
    is_due = work.versions_left is not None and work.versions_left <= 0
    return LATE if work.is_straggler or is_due else TRAINING


def _weight(work: Work, config: LoopConfig) -> float:
    weights = {
        each.id: _environment_weight(each)
        for each in config.environments
        if not each.is_passed_by or each.id == work.environment
    }
    share = weights[work.environment] / sum(weights.values())
    ahead = AHEAD_SHARE if work.kind == "training" and work.phase == "ahead" else 1.0
    return config.fairness_weight * share * ahead * work.curriculum_weight


def _environment_weight(environment: EnvironmentConfig) -> float:
    """Let environments end together by default: each starts in proportion to its tasks."""
    given = environment.fairness_weight
    return environment.weight if given is None else given


def _fairness_key(loop_id: str, environment: str, config: LoopConfig) -> str:
    """Name the loop, and the environment where it has several; long names end in a digest."""
    name = loop_id if len(config.environments) == 1 else f"{loop_id}/{environment}"
    raw = name.encode()
    if len(raw) <= _MAX_KEY_BYTES:
        return name
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return f"{raw[: _MAX_KEY_BYTES - 17].decode(errors='ignore')}-{digest}"
