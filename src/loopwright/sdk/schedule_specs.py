"""The times of a schedule, as Temporal takes and tells them."""

import dataclasses
import difflib
import zoneinfo
from collections.abc import Iterator
from datetime import timedelta

from temporalio.client import (
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleRange,
    ScheduleSpec,
)

from loopwright.contracts import calendars
from loopwright.contracts.failures import UserError
from loopwright.contracts.schedules import CalendarTimes, ScheduleTimes, calendar_of_cron
from loopwright.sdk.durations import words_of


def spec_of(times: ScheduleTimes) -> ScheduleSpec:
    """Give Temporal's form.

    Raises:
        UserError: there is no such time zone.
    """
    check_zone(times.time_zone)
    every = times.every_seconds
    lines = (_calendar(calendar_of_cron(line), f"cron {line}") for line in times.cron)
    return ScheduleSpec(
        intervals=[
            ScheduleIntervalSpec(timedelta(seconds=every), timedelta(seconds=times.offset_seconds))
        ]
        if every
        else [],
        calendars=[*(_calendar(each, _words_of_fields(each)) for each in times.calendars), *lines],
        jitter=timedelta(seconds=times.jitter_seconds) or None,
        time_zone_name=times.time_zone,
    )


def words_of_spec(spec: ScheduleSpec) -> Iterator[str]:
    """Say each of the times that a schedule fires at: ``every 6h``, ``cron 0 3 * * *``."""
    for interval in spec.intervals:
        offset = _seconds(interval.offset)
        after = f", {words_of(offset)} later" if offset else ""
        yield f"every {words_of(_seconds(interval.every))}{after}"
    for calendar in spec.calendars:
        yield calendar.comment or f"calendar {_words_of_ranges(calendar)}"


def _seconds(time: timedelta | None) -> int:
    return int(time.total_seconds()) if time else 0


def check_zone(name: str) -> None:
    """Refuse a time zone that this host does not know, unless it knows none at all.

    Raises:
        UserError: it does not.
    """
    known = zoneinfo.available_timezones()
    if not known or name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "such as Europe/Berlin or UTC"
    raise UserError(f"time_zone: expected the name of a time zone, got {name!r}; {hint}")


def _calendar(times: CalendarTimes, comment: str) -> ScheduleCalendarSpec:
    every_year = {"year"} if times.year == "*" else set()
    names = calendars.FIELDS.keys() - every_year
    return ScheduleCalendarSpec(
        comment=comment, **{name: _ranges(times.values(name)) for name in names}
    )


def _ranges(values: tuple[int, ...]) -> tuple[ScheduleRange, ...]:
    return tuple(ScheduleRange(first, last) for first, last in calendars.runs(values))


def _words_of_fields(times: CalendarTimes) -> str:
    """Write a calendar as it was given, without what it has by default."""
    given = times.model_dump(exclude_defaults=True)
    return " ".join(["calendar", *(f"{name}={text}" for name, text in given.items())])


def _words_of_ranges(calendar: ScheduleCalendarSpec) -> str:
    """Write a calendar that another program has made."""
    default = dataclasses.asdict(ScheduleCalendarSpec())
    fields = {name: getattr(calendar, name) for name in calendars.FIELDS}
    return " ".join(
        f"{name}={','.join(map(_words_of_range, ranges))}"
        for name, ranges in fields.items()
        if [dataclasses.asdict(each) for each in ranges] != list(default[name])
    )


def _words_of_range(each: ScheduleRange) -> str:
    step = f"/{each.step}" if each.step > 1 else ""
    return f"{each.start}{step}" if each.end == each.start else f"{each.start}-{each.end}{step}"
