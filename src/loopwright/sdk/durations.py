"""Times of seconds as people write them: ``90s``, ``1h30m``, ``2d``."""

import re

_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s?)?", re.ASCII)


def seconds_of(text: str) -> int:
    """Read a time; a number alone is seconds.

    Raises:
        ValueError: it is none.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(f"expected a time such as 90s, 1h30m or 2d; got {text!r}")
    counts = zip(match.groups(), _UNITS.values(), strict=True)
    return sum(int(count) * seconds for count, seconds in counts if count)


def words_of(seconds: int) -> str:
    """Write a time: ``1h30m``."""
    words = ""
    for unit, length in _UNITS.items():
        count, seconds = divmod(seconds, length)
        words += f"{count}{unit}" if count else ""
    return words or "0s"
