"""Components become a reward."""

from collections.abc import Mapping

from loopwright.contracts.episodes import Component, Grade, Verdict


def grade(verdict: Verdict, components: Mapping[str, Component]) -> Grade:
    """Give the weighted sum of the components; no reward without a verdict or a valid one.

    A component that is not valid makes the whole reward invalid: a sum with a part missing is
    another reward, not a smaller one.
    """
    is_valid = verdict is not Verdict.NO_VERDICT and all(c.valid for c in components.values())
    reward = sum(c.score * c.weight for c in components.values()) if is_valid else None
    return Grade(verdict=verdict, components=dict(components), reward=reward)
