"""Rewards of a group become advantages, one function an estimator.

All take the rewards of the valid episodes of one group, shape ``(G,)`` with G >= 2, and give as
many advantages, unitless. Equal rewards give exact zeros.
"""

import math
from collections.abc import Callable, Mapping, Sequence

_EPSILON = 1e-6


def grpo(rewards_G: Sequence[float]) -> list[float]:
    """Return (r - mean) / (std + 1e-6), std with denominator G - 1 (GRPO, arXiv 2402.03300)."""
    centred = dr_grpo(rewards_G)
    std = math.sqrt(math.fsum(value * value for value in centred) / (len(centred) - 1))
    return [value / (std + _EPSILON) for value in centred]


def dr_grpo(rewards_G: Sequence[float]) -> list[float]:
    """Return r - mean (Dr. GRPO, arXiv 2503.20783)."""
    _check(rewards_G)
    if min(rewards_G) == max(rewards_G):
        return [0.0] * len(rewards_G)
    mean = math.fsum(rewards_G) / len(rewards_G)
    return [reward - mean for reward in rewards_G]


def rloo(rewards_G: Sequence[float]) -> list[float]:
    """Return r minus the mean of the others, = G / (G - 1) (r - mean) (RLOO, arXiv 2402.14740)."""
    scale = len(rewards_G) / (len(rewards_G) - 1) if len(rewards_G) > 1 else 1.0
    return [scale * value for value in dr_grpo(rewards_G)]


ESTIMATORS: Mapping[str, Callable[[Sequence[float]], list[float]]] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
}
"""Estimator by its name in the configuration."""


def of_group(rewards_G: Sequence[float | None], estimator: str) -> list[float | None]:
    """Give each valid episode its advantage and every other None.

    Fewer than two valid rewards have no baseline: all are None then.
    """
    valid = [reward for reward in rewards_G if reward is not None]
    if len(valid) < 2:
        return [None] * len(rewards_G)
    advantages = iter(ESTIMATORS[estimator](valid))
    return [None if reward is None else next(advantages) for reward in rewards_G]


def _check(rewards_G: Sequence[float]) -> None:
    if len(rewards_G) < 2:
        raise ValueError(f"a group baseline needs at least 2 valid rewards, got {len(rewards_G)}")
    wrong = [reward for reward in rewards_G if not math.isfinite(reward)]
    if wrong:
        raise ValueError(f"rewards must be finite, got {wrong[0]}")
