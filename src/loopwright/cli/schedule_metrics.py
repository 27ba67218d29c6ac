"""Schedules as metrics, in the text form that Prometheus reads."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopwright.sdk import ScheduleDescription

_COUNTERS = {
    "fired": "num_fired",
    "skipped": "num_skipped",
    "missed": "num_missed",
    "dropped": "num_dropped",
}


def metrics_of(schedules: Sequence["ScheduleDescription"]) -> Iterator[str]:
    """Write what became of the times of each schedule, and whether it is paused.

    Example:
        ``loopwright_schedule_skipped_total{schedule="nightly",loop="first"} 2``
    """
    for word, field in _COUNTERS.items():
        yield f"# TYPE loopwright_schedule_{word}_total counter"
        for each in schedules:
            yield f"loopwright_schedule_{word}_total{_labels(each)} {getattr(each, field)}"
    yield "# TYPE loopwright_schedule_paused gauge"
    for each in schedules:
        yield f"loopwright_schedule_paused{_labels(each)} {int(each.is_paused)}"


def _labels(found: "ScheduleDescription") -> str:
    return f'{{schedule="{found.name}",loop="{found.loop_id}"}}'
