"""What histories and stored records depend on changes only on purpose."""

import json
from typing import Any

import pytest

from tests.architecture import pins

ADVICE = (
    "stored records and histories depend on this; if the change is meant, run "
    "`.venv/bin/python -m tests.architecture.pins` and commit tests/architecture/schemas.json"
)


@pytest.fixture(scope="module")
def pinned() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(pins.PATH.read_text())
    return stored


@pytest.mark.parametrize("kind", ["activities", "workflows", "schemas"])
def test_names_and_schemas_are_the_pinned_ones(kind: str, pinned: dict[str, Any]) -> None:
    assert pins.current()[kind] == pinned[kind], ADVICE
