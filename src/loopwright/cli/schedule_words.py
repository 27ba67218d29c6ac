"""A schedule in a few lines."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopwright.sdk import Firing, ScheduleDescription


def describe_schedule(found: "ScheduleDescription", *, num_firings: int) -> Iterator[str]:
    """Tell what it does, when, and what became of its times."""
    from loopwright.sdk.schedules import words_of_work

    yield f"{found.name}: {words_of_work(found.work)} of loop {found.loop_id}"
    yield f"  times: {_times(found)}"
    yield f"  next: {_next(found)}"
    if found.note:
        yield f"  note: {found.note}"
    yield (
        f"  fired {found.num_fired}, skipped for overlap {found.num_skipped}, "
        f"missed the catch-up window {found.num_missed}, dropped {found.num_dropped}, "
        f"running {len(found.running)}, waiting {found.num_waiting} (overlap {found.overlap})"
    )
    for firing in found.firings[-num_firings:]:
        yield f"  {firing.started_at:%Y-%m-%d %H:%M:%S} {firing.outcome}{_end(firing)}"


def _times(found: "ScheduleDescription") -> str:
    from loopwright.sdk.durations import words_of

    jitter = f", late by up to {words_of(found.jitter_seconds)}" if found.jitter_seconds else ""
    return f"{'; '.join(found.times)} ({found.time_zone}){jitter}"


def _next(found: "ScheduleDescription") -> str:
    if found.is_paused:
        return "none, it is paused"
    return f"{found.next_times[0]:%Y-%m-%d %H:%M:%S} UTC" if found.next_times else "none is left"


def _end(firing: "Firing") -> str:
    from loopwright.cli.wording import percent

    if firing.failure:
        return f": {firing.failure}"
    result = firing.result
    if result is None:
        return ""
    if result.evaluation:
        rate = result.evaluation.first_pass_rate
        return f": first answer {percent(rate.mean if rate else None)}"
    return f": iterations up to {result.last_iteration}"
