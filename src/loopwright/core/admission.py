"""Which groups may enter a batch."""

import math
from collections.abc import Sequence


def refusal(rewards_G: Sequence[float | None]) -> str:
    """Say why a group of G episodes is not admitted; empty when it is.

    A group needs max(2, ceil(0.75 G)) valid rewards, or the missing ones bias its baseline, and
    two different rewards, or it teaches nothing.
    """
    valid = [reward for reward in rewards_G if reward is not None]
    needed = max(2, math.ceil(0.75 * len(rewards_G)))
    if len(valid) < needed:
        return f"too few valid episodes: {len(valid)} of {len(rewards_G)}, {needed} needed"
    if min(valid) == max(valid):
        return f"no signal: every reward is {valid[0]:g}"
    return ""
