"""What a model refuses, in the words of the platform."""

import pickle
from collections.abc import Callable
from functools import partial

import pytest
from pydantic import ValidationError

from loopwright.contracts.base import refusals
from loopwright.contracts.configs import EnvironmentConfig, LoopConfig, TrainConfig
from loopwright.contracts.failures import UserError
from loopwright.contracts.policies import SamplingParams
from loopwright.contracts.workspaces import Limits


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"seed": "x"}, "seed: expected a valid integer, got 'x'"),
        ({"seed": -1}, "seed: expected greater than or equal to 0, got -1"),
        ({"train": {"clip_lwo": 1}}, "train.clip_lwo: unknown"),
        ({"policy": {"model": None}}, "policy.model: expected a valid string, got None"),
        ({"engines": [{"name": 1}]}, "engines.0.name: expected a valid string, got 1"),
        ({"engines": []}, "engines: tuple should have at least 1 item after validation, not 0"),
        ({"engines": "main"}, "engines: expected a valid tuple, got 'main'"),
        ({"sampling": {"temperature": 0}}, "sampling.temperature (0) must be above 0"),
    ],
)
def test_refused_value_is_named_with_what_was_expected(
    values: dict[str, object], expected: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        LoopConfig.model_validate(values)
    (said,) = refusals(caught.value)
    assert said.startswith(expected)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (
            lambda: LoopConfig(seed=-1),
            "LoopConfig: seed: expected greater than or equal to 0, got -1",
        ),
        (
            lambda: EnvironmentConfig(weight=0),
            "EnvironmentConfig: weight: expected greater than 0, got 0",
        ),
        (lambda: Limits(wall_seconds=0), "Limits: wall_seconds: expected greater than 0, got 0"),
        (
            lambda: LoopConfig(sampling=SamplingParams(top_k=3)),
            "LoopConfig: sampling.top_p (1.0) must be 1 and sampling.top_k (3) 0: "
            "the trainer computes probabilities over every token",
        ),
        (
            partial(LoopConfig, **{"train": {"clip_lwo": 1}, "seed": "x"}),
            "LoopConfig: train.clip_lwo: unknown; seed: expected a valid integer, got 'x'",
        ),
    ],
)
def test_configuration_built_wrongly_says_all_that_is_wrong(
    build: Callable[[], object], expected: str
) -> None:
    with pytest.raises(UserError) as caught:
        build()
    assert str(caught.value) == expected
    assert caught.value.__suppress_context__


def test_configuration_is_the_same_after_it_was_written_and_read() -> None:
    config = LoopConfig(seed=3, train=TrainConfig(learning_rate=1e-3))
    assert LoopConfig.model_validate_json(config.model_dump_json()) == config
    assert pickle.loads(pickle.dumps(config)) == config
