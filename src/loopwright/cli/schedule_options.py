"""Options of ``loopwright schedule``, each value checked as it is read."""

from datetime import UTC, datetime
from typing import Annotated

import typer

LONGEST = 366 * 24 * 3600


def duration(text: str | int) -> int:
    """Read a time such as ``1h30m``, as seconds."""
    from loopwright.sdk.durations import seconds_of, words_of

    try:
        seconds = text if isinstance(text, int) else seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if seconds > LONGEST:
        raise typer.BadParameter(f"expected at most {words_of(LONGEST)}, got {text!r}")
    return seconds


def interval(text: str | int) -> int:
    """Read a time that is longer than none."""
    if not (seconds := duration(text)):
        raise typer.BadParameter(f"expected at least 1s, got {text!r}")
    return seconds


def window(text: str | int) -> int:
    """Read a catch-up window; Temporal knows none below ten seconds."""
    if (seconds := duration(text)) < 10:
        raise typer.BadParameter(f"expected at least 10s, got {text!r}")
    return seconds


def cron(text: str) -> str:
    """Check a cron line."""
    from loopwright.contracts.calendars import fields_of_cron

    try:
        fields_of_cron(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}") from None
    return text


def calendar(text: str) -> str:
    """Check a calendar."""
    from loopwright.contracts.failures import UserError
    from loopwright.contracts.schedules import CalendarTimes

    try:
        CalendarTimes(**fields_of_calendar(text))
    except UserError as error:
        raise typer.BadParameter(str(error).removeprefix("CalendarTimes: ")) from None
    return text


def fields_of_calendar(text: str) -> dict[str, str]:
    """Split ``hour=3 day_of_week=mon-fri`` into its fields."""
    found: dict[str, str] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"expected FIELD=VALUES, got {word!r}")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice")
        found[name] = value
    if not found:
        raise typer.BadParameter(f"expected FIELD=VALUES..., got {text!r}")
    return found


def zone(text: str) -> str:
    """Check the name of a time zone."""
    from loopwright.contracts.failures import UserError
    from loopwright.sdk.schedule_specs import check_zone

    try:
        check_zone(text)
    except UserError as error:
        raise typer.BadParameter(str(error).removeprefix("time_zone: ")) from None
    return text


def overlap(text: str) -> str:
    """Check the name of an overlap policy."""
    policies = ("skip", "buffer_one", "buffer_all")
    if text not in policies:
        raise typer.BadParameter(f"expected one of {', '.join(policies)}; got {text!r}")
    return text


def moment(text: str | datetime) -> datetime:
    """Read a time; one without a zone is UTC."""
    try:
        found = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"expected a time such as 2026-03-01T02:00 or 2026-03-01T02:00+01:00, got {text!r}"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the schedule; `schedule list` shows them.")
]
Every = Annotated[
    int | None,
    typer.Option(
        "--every", metavar="TIME", parser=interval, help="Fire at this interval: 6h, 1h30m, 90s."
    ),
]
Offset = Annotated[
    int,
    typer.Option(
        "--offset", metavar="TIME", parser=duration, help="How much later than --every counts."
    ),
]
Cron = Annotated[
    list[str] | None,
    typer.Option(
        "--cron", metavar="LINE", parser=cron, help="Fire as a cron line says; may be repeated."
    ),
]
Calendar = Annotated[
    list[str] | None,
    typer.Option(
        "--calendar",
        metavar="FIELDS",
        parser=calendar,
        help="Fire when all fields match: 'hour=3 day_of_week=mon-fri'; may be repeated.",
    ),
]
Iterations = Annotated[
    int | None,
    typer.Option("--iterations", min=1, max=100_000, help="Iterations that a firing asks for."),
]
Evaluate = Annotated[
    bool, typer.Option("--evaluate", help="Let a firing ask for an evaluation instead.")
]
Tasks = Annotated[
    int | None,
    typer.Option("--tasks", min=2, max=200, help="Tasks of the evaluation; else the loop's."),
]
Samples = Annotated[
    int | None,
    typer.Option("--samples", min=1, max=64, help="Episodes of each task; else the loop's."),
]
Overlap = Annotated[
    str,
    typer.Option(
        "--overlap",
        metavar="POLICY",
        parser=overlap,
        help="While a firing runs: skip others, buffer_one of them, or buffer_all.",
    ),
]
CatchUp = Annotated[
    int,
    typer.Option(
        "--catch-up",
        metavar="TIME",
        parser=window,
        help="How late a time that an outage missed may still fire.",
    ),
]
PauseOnFailure = Annotated[
    bool,
    typer.Option(
        "--pause-on-failure/--go-on-after-failure", help="What a firing that failed leads to."
    ),
]
Jitter = Annotated[
    int,
    typer.Option(
        "--jitter", metavar="TIME", parser=duration, help="Fire late by a random time up to this."
    ),
]
TimeZone = Annotated[
    str,
    typer.Option(
        "--time-zone",
        metavar="ZONE",
        parser=zone,
        help="Zone of cron and calendars: Europe/Berlin.",
    ),
]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why; `list` shows it.")]
