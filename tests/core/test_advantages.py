"""Advantages against worked values."""

import math
import statistics

import pytest

from loopwright.core import advantages


def test_grpo_divides_by_the_unbiased_deviation() -> None:
    rewards = [0.0, 1.0, 1.0, 0.5]
    mean, std = statistics.mean(rewards), statistics.stdev(rewards)
    expected = [(reward - mean) / (std + 1e-6) for reward in rewards]
    assert advantages.grpo(rewards) == pytest.approx(expected, rel=1e-12)


def test_dr_grpo_only_subtracts_the_mean() -> None:
    assert advantages.dr_grpo([0.0, 1.0]) == [-0.5, 0.5]


def test_rloo_subtracts_the_mean_of_the_others() -> None:
    # 3 - (1 + 2) / 2 = 1.5; 1 - (3 + 2) / 2 = -1.5; 2 - (3 + 1) / 2 = 0
    assert advantages.rloo([3.0, 1.0, 2.0]) == pytest.approx([1.5, -1.5, 0.0])


@pytest.mark.parametrize("estimator", list(advantages.ESTIMATORS))
@pytest.mark.parametrize("reward", [0.0, 0.1, 1e6 + 0.1])
def test_equal_rewards_give_exact_zeros(estimator: str, reward: float) -> None:
    assert advantages.ESTIMATORS[estimator]([reward] * 7) == [0.0] * 7


@pytest.mark.parametrize("estimator", list(advantages.ESTIMATORS))
def test_group_of_one_has_no_baseline(estimator: str) -> None:
    with pytest.raises(ValueError, match="at least 2"):
        advantages.ESTIMATORS[estimator]([1.0])
    assert advantages.of_group([1.0, None], estimator) == [None, None]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_reward_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        advantages.grpo([0.0, bad])


def test_episodes_without_reward_take_no_part_in_the_baseline() -> None:
    assert advantages.of_group([1.0, None, 0.0], "dr_grpo") == [0.5, None, -0.5]
