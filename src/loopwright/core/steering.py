"""Which keys of a running loop's configuration may change, and what a change makes of it."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from loopwright.contracts.base import refusals
from loopwright.contracts.configs import EnvironmentConfig, LoopConfig
from loopwright.contracts.failures import UserError

_SECTIONS = ("iteration", "episode", "sampling", "train", "evaluation")
_FIXED = ("policy", "engines", "environments", "seed", "profile")
"""What a loop is; a loop with another one is another loop."""


def changed(config: LoopConfig, changes: Mapping[str, Any]) -> LoopConfig:
    """Give the configuration with some keys changed; children that start later follow it.

    Args:
        config: as it stands.
        changes: new values by key: ``train.learning_rate``, ``environments.ID.weight``.

    Raises:
        UserError: a key is none, cannot change, or does not take the value; nothing is changed.
    """
    if not changes:
        raise UserError("nothing to set; give a key and its value, as in train.learning_rate=1e-4")
    value = config.model_dump(mode="json")
    known = list(settable_keys(config))
    for key, new in changes.items():
        _put(value, key, new, known=known)
    try:
        return LoopConfig.model_validate(value)
    except ValidationError as error:
        raise UserError("; ".join(refusals(error))) from None


def changes_tasks(changes: Mapping[str, Any]) -> bool:
    """Tell whether other tasks may be drawn after a change, or more of them."""
    keys = ("environments", "iteration.num_tasks", "iteration.spare_groups")
    return any(key.startswith(keys) for key in changes)


def changes_heldout_tasks(config: LoopConfig, changes: Mapping[str, Any]) -> bool:
    """Tell whether a loop that evaluates may draw other held-out tasks after a change, or more.

    Args:
        config: as it is after the change.
        changes: new values by key.
    """
    is_used = config.evaluation.at_end or config.evaluation.every > 0
    return is_used and any(key.startswith(("environments", "evaluation")) for key in changes)


def settable_keys(config: LoopConfig) -> Iterator[str]:
    """List every key that may change."""
    for name in LoopConfig.model_fields:
        if name in _SECTIONS:
            yield from (f"{name}.{key}" for key in type(getattr(config, name)).model_fields)
        elif name not in _FIXED:
            yield name
    for environment in config.environments:
        keys = [key for key in EnvironmentConfig.model_fields if key != "id"]
        yield from (f"environments.{environment.id}.{key}" for key in keys)


def _put(value: dict[str, Any], key: str, new: Any, *, known: list[str]) -> None:
    """Put a new value in its place; a key below one that may change may change, too."""
    parts = key.split(".")
    if parts[0] == "environments" and len(parts) > 2:
        section = next((each for each in value["environments"] if each["id"] == parts[1]), None)
        parts = ["environments", *parts[2:]] if section is not None else []
    else:
        section, parts = value, parts
    if section is None or not any(key == each or key.startswith(f"{each}.") for each in known):
        raise UserError(_unknown(key, known))
    path = parts[1:] if section is not value else parts
    for part in path[:-1]:
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise UserError(_unknown(key, known))
    section[path[-1]] = new


def _unknown(key: str, known: list[str]) -> str:
    if key.split(".")[0] in _FIXED and not key.startswith("environments."):
        return f"{key}: cannot change while a loop runs; start another loop"
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return f"{key}: no key of a running loop that can be set; {hint}"
