"""What callers give the client, checked before anything is sent."""

import json
import math
import re
from collections.abc import Collection, Mapping
from datetime import datetime

from loopwright.contracts.base import Configuration
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.failures import UserError
from loopwright.contracts.iterations import MAX_CHANGES

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_loop_id(value: object) -> None:
    """Refuse what is no id of a loop.

    Raises:
        UserError: it is none.
    """
    check_id("loop id", value)


def check_id(name: str, value: object) -> None:
    """Refuse what names neither a loop nor a schedule.

    Raises:
        UserError: it does not.
    """
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise _refusal(
            name, "up to 64 letters, digits, '.', '_' or '-', the first a letter or digit", value
        )


def check_config(value: object, kind: type[Configuration] = LoopConfig) -> None:
    """Refuse what is no configuration of a kind.

    Raises:
        UserError: it is none.
    """
    if not isinstance(value, kind):
        raise _refusal("config", f"a {kind.__name__} ({kind.__module__})", value)


def check_whole_number(name: str, value: object, *, most: int | None = None) -> None:
    """Refuse what is no whole number from 1.

    Raises:
        UserError: it is none.
    """
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or value < 1 or (most is not None and value > most):  # type: ignore[operator]
        upper = "" if most is None else f" to {most}"
        raise _refusal(name, f"a whole number from 1{upper}", value)


def check_seconds(name: str, value: object) -> None:
    """Refuse what is no positive number of seconds.

    Raises:
        UserError: it is none.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not (0 < value < math.inf):  # type: ignore[operator]
        raise _refusal(name, "a positive number of seconds", value)


def check_changes(value: object) -> None:
    """Refuse what is no mapping of keys to values that JSON knows.

    Raises:
        UserError: it is none.
    """
    is_mapping = isinstance(value, Mapping) and 0 < len(value) <= MAX_CHANGES
    if not is_mapping or not all(isinstance(key, str) for key in value):  # type: ignore[attr-defined]
        raise _refusal("changes", f"1 to {MAX_CHANGES} new values by key", value)
    try:
        json.dumps(dict(value), allow_nan=False)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise _refusal("changes", "values that JSON knows", value) from None


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse what is none of a few words.

    Raises:
        UserError: it is none.
    """
    if not isinstance(value, str) or value not in choices:
        raise _refusal(name, f"one of {', '.join(choices)}", value)


def check_text(name: str, value: object) -> None:
    """Refuse what is no text.

    Raises:
        UserError: it is none.
    """
    if not isinstance(value, str):
        raise _refusal(name, "text", value)


def check_time(name: str, value: object) -> datetime:
    """Give a time that says what it is relative to; refuse any other.

    Raises:
        UserError: it is none.
    """
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise _refusal(name, "a datetime with a time zone", value)
    return value


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False.

    Raises:
        UserError: it is neither.
    """
    if not isinstance(value, bool):
        raise _refusal(name, "True or False", value)


def _refusal(name: str, expected: str, value: object) -> UserError:
    text = repr(value)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return UserError(f"{name}: expected {expected}; got {shown}")
