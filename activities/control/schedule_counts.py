"""How often a schedule has not fired, for the metrics of the worker."""

from typing import NamedTuple

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError

from loopwright.activities.control.loop_runs import RPC_TIMEOUT


class ScheduleCounts(NamedTuple):
    """Firings of a schedule that did not come about, since it was made."""

    num_skipped: int = 0
    """An earlier one had not ended."""
    num_missed: int = 0
    """The server was away for longer than the catch-up window."""


async def schedule_counts(client: Client, name: str) -> ScheduleCounts:
    """Read the counts of a schedule and set its gauges; zeros where they cannot be had.

    Nothing depends on them, so a schedule that is gone meanwhile does no harm.
    """
    try:
        found = await client.get_schedule_handle(name).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        activity.logger.info("schedule %s tells no counts: %s", name, error.message)
        return ScheduleCounts()
    counts = ScheduleCounts(
        found.info.num_actions_skipped_overlap, found.info.num_actions_missed_catchup_window
    )
    _set_gauges(name, counts)
    return counts


def _set_gauges(name: str, counts: ScheduleCounts) -> None:
    meter = activity.metric_meter()
    gauges = {
        "loopwright_schedule_skipped_firings": counts.num_skipped,
        "loopwright_schedule_missed_firings": counts.num_missed,
    }
    for gauge, value in gauges.items():
        meter.create_gauge(gauge, "Firings that did not come about").set(value, {"schedule": name})
