import pytest

from loopwright.contracts.configs import EnvironmentConfig, EvaluationConfig, LoopConfig
from loopwright.contracts.failures import UserError
from loopwright.core import steering

CONFIG = LoopConfig(
    environments=(EnvironmentConfig(options={"difficulties": [1, 2]}),),
    evaluation=EvaluationConfig(every=2),
)


def test_only_the_keys_named_change() -> None:
    found = steering.changed(CONFIG, {"train.learning_rate": 1e-5, "sampling.max_tokens": 64})
    assert found.train.learning_rate == 1e-5
    assert found.sampling.max_tokens == 64
    assert steering.changed(found, {"train.learning_rate": 2e-4, "sampling.max_tokens": 96}) == (
        CONFIG
    )


def test_environment_is_named_by_its_id() -> None:
    found = steering.changed(
        CONFIG,
        {
            "environments.program_steps.weight": 3,
            "environments.program_steps.options.difficulties": [4],
        },
    )
    assert found.environments[0].weight == 3
    assert found.environments[0].options == {"difficulties": [4]}


def test_keys_of_the_top_level_change_and_may_be_null() -> None:
    found = steering.changed(CONFIG, {"num_iterations": None, "target_pass_rate": 0.9})
    assert (found.num_iterations, found.target_pass_rate) == (None, 0.9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "nothing to set"),
        ({"seed": 3}, "seed: cannot change while a loop runs"),
        ({"policy.model": "x"}, "policy.model: cannot change while a loop runs"),
        ({"engines": []}, "engines: cannot change while a loop runs"),
        ({"train.learning_rat": 1}, "did you mean train.learning_rate?"),
        ({"train": {}}, "train: no key of a running loop that can be set"),
        ({"": 1}, "no key of a running loop"),
        ({".": 1}, "no key of a running loop"),
        ({"train.learning_rate.x": 1}, "no key of a running loop"),
        ({"environments.other.weight": 1}, "environments.other.weight: no key"),
        ({"environments.program_steps.id": "x"}, "no key of a running loop"),
        ({"environments.program_steps": {}}, "no key of a running loop"),
        ({"train.learning_rate": 0}, r"train.learning_rate: expected greater than 0, got 0"),
        ({"iteration.group_size": "many"}, "iteration.group_size: expected a valid integer"),
        ({"sampling.max_tokens": 4000}, "must be smaller than episode.max_tokens"),
        ({"sampling.top_p": 0.5}, "sampling.top_p"),
        ({"train.learning_rate": 1e-5, "seed": 1}, "seed: cannot change"),
    ],
)
def test_change_that_cannot_be_made_is_refused_with_what_can(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        steering.changed(CONFIG, changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"sampling.max_tokens": 500, "episode.max_tokens": 1000},
        {"iteration.stragglers": "carry", "iteration.max_staleness": 1},
    ],
)
def test_keys_that_fit_each_other_change_together_in_any_order(changes: dict[str, object]) -> None:
    backwards = dict(reversed(changes.items()))
    assert steering.changed(CONFIG, changes) == steering.changed(CONFIG, backwards)


def test_wrong_value_before_another_key_is_refused_like_one_alone() -> None:
    with pytest.raises(UserError, match=r"train.learning_rate: expected greater than 0, got -1"):
        steering.changed(CONFIG, {"train.learning_rate": -1, "episode.max_turns": 3})


def test_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(UserError, match=r"train.clip_high: expected a finite number"):
        steering.changed(CONFIG, {"train.clip_high": "inf"})
