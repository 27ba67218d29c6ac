"""Times of the calendar, as people write them: which values of a field match.

A field is ``*``, a value, a range ``a-b``, each with an optional step ``/n``, or several of these
with commas between them. Months and days of the week have names, too.
"""

import calendar
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_TOKEN = re.compile(r"(?P<low>\*|\w+)(?:-(?P<high>\w+))?(?:/(?P<step>\d{1,4}))?", re.ASCII)
_LEAP_YEAR = 2000


@dataclass(frozen=True, slots=True)
class Field:
    """The values that a field of a calendar may have."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Names of the values from ``low`` on, of three letters."""

    def values(self, text: str) -> tuple[int, ...]:
        """Give the values that ``text`` matches, in their order.

        Example:
            ``FIELDS["day_of_week"].values("mon-fri") == (1, 2, 3, 4, 5)``

        Raises:
            ValueError: it is no such text.
        """
        found = {value for token in text.split(",") for value in self._range(token, text)}
        if self.name == "day_of_week":
            found = {value % 7 for value in found}
        return tuple(sorted(found))

    def _range(self, token: str, text: str) -> range:
        match = _TOKEN.fullmatch(token.strip())
        if match is None:
            raise self._refusal(text)
        low, high, step = match["low"], match["high"], int(match["step"] or 1)
        first = self.low if low == "*" else self._value(low, text)
        last = first if low != "*" and match["step"] is None else self._last()
        if high is not None:
            last = self._value(high, text)
        if first > last or step == 0 or (low == "*" and high is not None):
            raise self._refusal(text)
        return range(first, last + 1, step)

    def _value(self, word: str, text: str) -> int:
        if word.isdecimal():
            value = int(word)
        elif word.lower()[:3] in self.names and len(word) >= 3:
            value = self.low + self.names.index(word.lower()[:3])
        else:
            raise self._refusal(text)
        if not self.low <= value <= self.high:
            raise self._refusal(text)
        return value

    def _last(self) -> int:
        """Give the last value of all; Sunday, which may be 0 or 7, comes first."""
        return 6 if self.name == "day_of_week" else self.high

    def _refusal(self, text: str) -> ValueError:
        names = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return ValueError(
            f"{self.name}: expected *, values from {self.low} to {self.high}{names}, "
            f"ranges a-b, steps /n, or several with commas; got {text!r}"
        )


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

FIELDS = {
    field.name: field
    for field in (
        Field("second", 0, 59),
        Field("minute", 0, 59),
        Field("hour", 0, 23),
        Field("day_of_month", 1, 31),
        Field("month", 1, 12, _MONTHS),
        Field("year", 2000, 2100),
        Field("day_of_week", 0, 7, _DAYS),
    )
}
"""The fields of a calendar, by name."""

_CRON_FIELDS = ("minute", "hour", "day_of_month", "month", "day_of_week")
_CRON_WORDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


def check(fields: Mapping[str, str]) -> None:
    """Refuse fields that are none, and days that none of their months has.

    Raises:
        ValueError: there is one.
    """
    values = {name: FIELDS[name].values(text) for name, text in fields.items()}
    longest = max(calendar.monthrange(_LEAP_YEAR, month)[1] for month in values["month"])
    if min(values["day_of_month"]) > longest:
        raise ValueError(
            f"day_of_month: expected a day that month {fields['month']} has, at most {longest}; "
            f"got {fields['day_of_month']!r}"
        )


def fields_of_cron(line: str) -> dict[str, str]:
    """Give the fields of a calendar that fires when a cron line of five fields does.

    Raises:
        ValueError: it is no such line, or one that cron programs do not agree on.
    """
    words = _CRON_WORDS.get(line.strip().lower(), line).split()
    if len(words) != len(_CRON_FIELDS):
        raise ValueError(
            f"expected five fields (minute hour day-of-month month day-of-week) "
            f"or one of {', '.join(_CRON_WORDS)}"
        )
    fields: dict[str, str] = dict(zip(_CRON_FIELDS, words, strict=True))
    check(fields)
    if fields["day_of_month"] != "*" and fields["day_of_week"] != "*":
        raise ValueError(
            "it gives a day of the month and a day of the week, and cron programs differ on "
            "whether both must match; give a calendar, where all must, or two lines"
        )
    return fields


def runs(values: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Give the first and last of each unbroken run of sorted values."""
    start = previous = values[0]
    for value in values[1:]:
        if value != previous + 1:
            yield start, previous
            start = value
        previous = value
    yield start, previous
