"""What a control worker is made of."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from temporalio.client import Client

from loopwright.activities.control.load_parked import LoadParked
from loopwright.activities.control.park_group import ParkGroup
from loopwright.activities.control.score_group import ScoreGroup
from loopwright.activities.control.select_tasks import select_tasks
from loopwright.activities.control.write_report import WriteReport
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store


async def compose(
    settings: Settings, client: Client, stack: AsyncExitStack
) -> list[Callable[..., Any]]:
    """Build the activities of the control pool."""
    store = open_store(settings)
    return [
        select_tasks,
        ScoreGroup(store).score_group,
        ParkGroup(store).park_group,
        LoadParked(store).load_parked,
        WriteReport(store).write_report,
    ]
