"""Times of schedules, and what is refused."""

from typing import Any

import pytest

from loopwright.contracts.failures import UserError
from loopwright.contracts.schedules import (
    CalendarTimes,
    ScheduleConfig,
    ScheduleTimes,
    calendar_of_cron,
)


@pytest.mark.parametrize(
    ("field", "text", "values"),
    [
        ("minute", "*/15", (0, 15, 30, 45)),
        ("minute", "5/20", (5, 25, 45)),
        ("minute", "1-10/4,30", (1, 5, 9, 30)),
        ("hour", "3", (3,)),
        ("month", "jan,March,12", (1, 3, 12)),
        ("day_of_week", "mon-fri", (1, 2, 3, 4, 5)),
        ("day_of_week", "5-7", (0, 5, 6)),
        ("day_of_week", "*", (0, 1, 2, 3, 4, 5, 6)),
        ("year", "2027-2028", (2027, 2028)),
    ],
)
def test_field_of_a_calendar_matches_its_values(
    field: str, text: str, values: tuple[int, ...]
) -> None:
    assert CalendarTimes(**{field: text}).values(field) == values


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("second", "60"),
        ("minute", "-1"),
        ("hour", "24"),
        ("hour", "5-3"),
        ("hour", "*-3"),
        ("hour", "1/0"),
        ("hour", ""),
        ("hour", "1,,2"),
        ("hour", "٣"),
        ("month", "ja"),
        ("day_of_week", "8"),
        ("day_of_month", "0"),
        ("year", "1999"),
    ],
)
def test_field_that_is_none_is_named_with_what_was_expected(field: str, text: str) -> None:
    with pytest.raises(UserError, match=f"^CalendarTimes: {field}: expected ") as caught:
        CalendarTimes(**{field: text})
    assert str(caught.value).endswith(f"; got {text!r}")


def test_day_that_no_month_has_is_refused() -> None:
    with pytest.raises(UserError, match="a day that month 2 has, at most 29; got '30'"):
        CalendarTimes(month="2", day_of_month="30")


def test_cron_line_is_the_calendar_of_its_fields() -> None:
    found = calendar_of_cron("*/30 3 * jan mon-fri")
    assert found == CalendarTimes(minute="*/30", hour="3", month="jan", day_of_week="mon-fri")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("@daily", CalendarTimes()),
        ("@hourly", CalendarTimes(hour="*")),
        ("@weekly", CalendarTimes(day_of_week="0")),
        ("@monthly", CalendarTimes(day_of_month="1")),
        ("@yearly", CalendarTimes(day_of_month="1", month="1")),
    ],
)
def test_cron_word_is_its_line(line: str, expected: CalendarTimes) -> None:
    assert calendar_of_cron(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("61 * * * *", "minute: expected"),
        ("* * * *", "expected five fields"),
        ("0 0 * * * *", "expected five fields"),
        ("@often", "expected five fields"),
        ("0 0 31 4,6 *", "a day that month 4,6 has, at most 30"),
        ("0 0 1 * mon", "cron programs differ"),
    ],
)
def test_cron_line_that_is_none_is_named(line: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        ScheduleTimes(cron=(line,))
    assert str(caught.value).startswith(f"ScheduleTimes: cron {line!r}: ")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "expected an interval, a cron line or a calendar; got none"),
        ({"every_seconds": 0}, "every_seconds: expected greater than or equal to 1, got 0"),
        ({"every_seconds": 5, "offset_seconds": 5}, "must be below every_seconds"),
        ({"cron": ("@daily",), "offset_seconds": 5}, "must be below every_seconds"),
        ({"every_seconds": 5, "jitter_seconds": -1}, "jitter_seconds: expected greater"),
    ],
)
def test_times_that_do_not_fit_are_named(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError) as caught:
        ScheduleTimes(**values)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"overlap": "cancel_other"}, "overlap: expected 'skip', 'buffer_one' or 'buffer_all'"),
        ({"catch_up_seconds": 9}, "catch_up_seconds: expected greater than or equal to 10"),
        ({"loop_id": "a/b"}, "loop_id: "),
        ({"work": {"kind": "iterations", "num_iterations": 0}}, "num_iterations: expected"),
    ],
)
def test_schedule_that_does_not_fit_is_named(values: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError) as caught:
        ScheduleConfig(**{"loop_id": "first", "times": ScheduleTimes(every_seconds=60), **values})
    assert expected in str(caught.value)
