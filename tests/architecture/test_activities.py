"""Activity bodies are what the contracts declare."""

import inspect
from typing import get_type_hints

import pytest

from tests.architecture.targets import (
    ACTIVITIES,
    activity_name,
    declared_activities,
    resolve,
)


@pytest.mark.parametrize("target", ACTIVITIES)
def test_activity_body_has_the_signature_that_workflows_call(target: str) -> None:
    body = resolve(target)
    declared = declared_activities()[activity_name(body)]
    parameters = [name for name in inspect.signature(body).parameters if name != "self"]
    assert parameters == list(inspect.signature(declared).parameters)
    assert get_type_hints(body) == get_type_hints(declared)


def test_every_declared_activity_has_one_body() -> None:
    names = [activity_name(resolve(target)) for target in ACTIVITIES]
    assert sorted(names) == sorted(declared_activities())


@pytest.mark.parametrize("target", ACTIVITIES)
def test_activity_is_found_by_its_name(target: str) -> None:
    pool, _, verb_object = activity_name(resolve(target)).partition(".")
    assert target.startswith(f"loopwright.activities.{pool}.{verb_object}:")
