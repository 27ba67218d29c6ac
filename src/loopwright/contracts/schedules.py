"""Schedules: what recurs, when, and what one firing asks of its loop."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from loopwright.contracts import calendars
from loopwright.contracts.base import Configuration, Contract
from loopwright.contracts.evaluations import EvaluateRequest, EvaluationResult
from loopwright.contracts.iterations import (
    MAX_ITERATIONS,
    IterationResult,
    RunIterationsRequest,
)

MAX_SECONDS = 366 * 24 * 3600
"""Longest interval, jitter or catch-up window."""

Overlap = Literal["skip", "buffer_one", "buffer_all"]
"""What becomes of a firing while an earlier one has not ended.

``skip`` leaves it out; ``buffer_one`` lets one wait for the end, ``buffer_all`` all. Temporal has
other policies, which are not offered: a loop does one thing after another in any case, and goes on
with what a firing asked for when that firing is ended.
"""


class ScheduledIterations(Configuration):
    """More iterations, once for each firing."""

    kind: Literal["iterations"] = "iterations"
    num_iterations: int = Field(default=1, ge=1, le=MAX_ITERATIONS)


class ScheduledEvaluation(Configuration):
    """An evaluation of the version that the loop has then."""

    kind: Literal["evaluation"] = "evaluation"
    num_tasks: int | None = Field(default=None, ge=2, le=200)
    """None takes the loop's."""
    samples: int | None = Field(default=None, ge=1, le=64)
    """Episodes of each task; None takes the loop's."""


Work = Annotated[ScheduledIterations | ScheduledEvaluation, Field(discriminator="kind")]


class CalendarTimes(Configuration):
    """Times whose every field matches.

    Example:
        ``CalendarTimes(hour="3", day_of_week="mon-fri")`` is three o'clock on working days.
    """

    second: str = "0"
    minute: str = "0"
    hour: str = "0"
    day_of_month: str = "*"
    month: str = "*"
    year: str = "*"
    day_of_week: str = "*"
    """0 or 7 is Sunday."""

    @model_validator(mode="after")
    def check_fields(self) -> "CalendarTimes":
        """Refuse fields that are none, and days that no month has."""
        calendars.check(self.model_dump())
        return self

    def values(self, name: str) -> tuple[int, ...]:
        """Give the values that one field matches."""
        return calendars.FIELDS[name].values(getattr(self, name))


def calendar_of_cron(line: str) -> CalendarTimes:
    """Give the calendar that fires when a cron line does.

    Raises:
        ValueError: it is no such line.
    """
    return CalendarTimes(**calendars.fields_of_cron(line))


class ScheduleTimes(Configuration):
    """When a schedule fires: at all times that any of these gives.

    Example:
        ``ScheduleTimes(cron=("0 3 * * mon-fri",), time_zone="Europe/Berlin")``
    """

    every_seconds: int | None = Field(default=None, ge=1, le=MAX_SECONDS)
    """An interval, counted from 1970."""
    offset_seconds: int = Field(default=0, ge=0)
    """How much later than that, below the interval."""
    cron: tuple[str, ...] = Field(default=(), max_length=16)
    """Lines of five fields: minute, hour, day of the month, month, day of the week."""
    calendars: tuple[CalendarTimes, ...] = Field(default=(), max_length=16)
    time_zone: str = "UTC"
    """IANA name of the zone that cron and calendars are of."""
    jitter_seconds: int = Field(default=0, ge=0, le=MAX_SECONDS)
    """Each firing is late by a random time up to this."""

    @model_validator(mode="after")
    def check_times(self) -> "ScheduleTimes":
        """Refuse lines that are none, and times that never come."""
        if problems := list(self._problems()):
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        if self.every_seconds is None and not self.cron and not self.calendars:
            yield "expected an interval, a cron line or a calendar; got none"
        if self.offset_seconds and self.offset_seconds >= (self.every_seconds or 0):
            yield (
                f"offset_seconds ({self.offset_seconds}) must be below every_seconds "
                f"({self.every_seconds})"
            )
        for line in self.cron:
            try:
                calendars.fields_of_cron(line)
            except ValueError as error:
                yield f"cron {line!r}: {error}"


class ScheduleConfig(Configuration):
    """A schedule: what it asks of which loop, when, and what becomes of late and failed firings."""

    loop_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    work: Work = ScheduledIterations()
    times: ScheduleTimes
    overlap: Overlap = "skip"
    catch_up_seconds: int = Field(default=3600, ge=10, le=MAX_SECONDS)
    """How late a firing may be made up for, when the server was away at its time."""
    pauses_on_failure: bool = True
    """Whether a firing that failed pauses the schedule."""


class AskLoopRequest(Contract):
    """Send a loop an update, once whatever happens (activity ``control.ask_loop``)."""

    loop_id: str
    request_id: str
    """Identity of the request; the loop takes one of each."""
    ask: RunIterationsRequest | EvaluateRequest
    schedule: str
    """Schedule whose counts are told along."""


class AskLoopResult(Contract):
    """What the loop took."""

    loop_run_id: str
    """First run of the loop: it tells the loop from a later namesake."""
    ask: RunIterationsRequest | EvaluateRequest
    last_iteration: int | None = None
    """Iterations that the loop will have done then; None for an evaluation."""
    num_skipped: int = 0
    """Firings that the schedule has skipped so far because an earlier one had not ended."""
    num_missed: int = 0
    """Firings that it could not make up for in time."""


class ScheduledWorkInput(Contract):
    """One firing of a schedule."""

    schedule: str
    loop_id: str
    work: Work
    asked: AskLoopResult | None = None
    """What was asked already, where this run continues another."""


class AwaitLoopRequest(Contract):
    """Wait until a loop has done what it was asked (activity ``control.await_loop``)."""

    loop_id: str
    asked: AskLoopResult


class AwaitLoopResult(Contract):
    """What has come of it."""

    is_done: bool
    """False when the wait is to go on, in another activity."""
    iterations: tuple[IterationResult, ...] = ()
    """The newest eight of those asked for."""
    evaluation: EvaluationResult | None = None


class ScheduledWorkResult(Contract):
    """What one firing came to."""

    loop_id: str
    last_iteration: int | None
    """Iterations that the loop had done then; None for an evaluation."""
    iterations: tuple[IterationResult, ...] = ()
    """The newest eight of those asked for."""
    evaluation: EvaluationResult | None = None
