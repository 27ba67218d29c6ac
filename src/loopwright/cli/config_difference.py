"""In what two configurations differ, key by key."""

from collections.abc import Iterator
from typing import Any

from loopwright.contracts.configs import LoopConfig


def differences(one: LoopConfig, other: LoopConfig) -> list[str]:
    """Name each key with its two values: ``train.learning_rate 0.0003 -> 0.001``."""
    ones = dict(_leaves(one.model_dump(mode="json")))
    others = dict(_leaves(other.model_dump(mode="json")))
    return [
        f"{key} {ones.get(key, 'absent')} -> {others.get(key, 'absent')}"
        for key in sorted(ones.keys() | others.keys())
        if ones.get(key, _ABSENT) != others.get(key, _ABSENT)
    ]


_ABSENT = object()


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    else:
        yield path, value
