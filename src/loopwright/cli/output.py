"""Where words and results go: results on stdout, everything else on stderr under ``--json``."""

import json
import sys
from typing import Any

from pydantic import BaseModel


def say(line: str, *, is_json: bool = False) -> None:
    """Print a line for a person."""
    print(line, file=sys.stderr if is_json else sys.stdout, flush=True)


def print_json(value: BaseModel | dict[str, Any] | list[Any]) -> None:
    """Print one JSON document on one line."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    print(json.dumps(value, allow_nan=False, default=str), flush=True)
