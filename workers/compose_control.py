"""What a control worker is made of."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from loopwright.activities.control.ask_loop import AskLoop
from loopwright.activities.control.await_loop import AwaitLoop
from loopwright.activities.control.load_parked import LoadParked
from loopwright.activities.control.park_group import ParkGroup
from loopwright.activities.control.score_group import ScoreGroup
from loopwright.activities.control.select_tasks import select_tasks
from loopwright.activities.control.write_report import WriteReport
from loopwright.activities.failures import FailureInterceptor
from loopwright.contracts import queues
from loopwright.contracts.queues import Pool
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store
from loopwright.workers.versions import BUILD, deployment_of

_WAITS_AT_ONCE = 1000
"""Firings of schedules that one process waits for; each takes a query every ten seconds."""


async def compose(
    settings: Settings, client: Client, stack: AsyncExitStack
) -> list[Callable[..., Any]]:
    """Build the activities of the control pool; the stack ends those that wait."""
    store = open_store(settings)
    await stack.enter_async_context(_waits(settings, client))
    return [
        select_tasks,
        AskLoop(client).ask_loop,
        ScoreGroup(store).score_group,
        ParkGroup(store).park_group,
        LoadParked(store).load_parked,
        WriteReport(store).write_report,
    ]


def _waits(settings: Settings, client: Client) -> Worker:
    """Make the worker of what only waits, apart: it must not keep from a slot what it waits for."""
    deployment = deployment_of(Pool.CONTROL, settings)
    return Worker(
        client,
        task_queue=queues.WAITS,
        activities=[AwaitLoop(client).await_loop],
        interceptors=[FailureInterceptor()],
        deployment_config=deployment,
        build_id=None if deployment else BUILD,
        max_concurrent_activities=_WAITS_AT_ONCE,
        graceful_shutdown_timeout=timedelta(seconds=5),
    )
