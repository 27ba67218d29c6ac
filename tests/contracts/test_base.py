"""What a model refuses, in the words of the platform."""

import pytest
from pydantic import ValidationError

from loopwright.contracts.base import refusals
from loopwright.contracts.configs import LoopConfig


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
