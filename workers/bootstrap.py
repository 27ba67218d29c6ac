"""The composition root: settings and a pool become a running worker."""

import asyncio
import logging
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from loopwright.activities.failures import FailureInterceptor
from loopwright.contracts import queues
from loopwright.contracts.queues import Pool
from loopwright.workers.connection import connect
from loopwright.workers.pools import POOLS
from loopwright.workers.settings import Settings
from loopwright.workers.tokenizers_alone import import_tokenizers_alone
from loopwright.workers.versions import BUILD, deployment_of

_logger = logging.getLogger(__name__)

_CACHED_WORKFLOWS = 10_000
"""Open workflows that are not read anew for each step; 60 KB each."""


async def run_worker(pool: Pool, settings: Settings) -> None:
    """Run one worker of a pool until SIGTERM or SIGINT, then let running work come to a rest.

    Raises:
        UserError: a setting is wrong, or Temporal cannot be reached.
    """
    stop = stop_event()
    client = await connect(settings)
    if pool is Pool.EPISODE:
        import_tokenizers_alone()
    async with AsyncExitStack() as stack:
        compose = import_module(f"loopwright.workers.compose_{pool}").compose
        activities = await compose(settings, client, stack)
        await serve(pool, settings, client, activities, stop=stop)


def stop_event() -> asyncio.Event:
    """Make what SIGTERM and SIGINT set from now on, instead of ending the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def serve(
    pool: Pool, settings: Settings, client: Client, activities: list[Any], *, stop: asyncio.Event
) -> None:
    """Poll for a pool until ``stop`` is set, then let running work come to a rest."""
    async with make_worker(pool, settings, client, activities):
        _say_ready(pool)
        await stop.wait()
        _logger.info("%s worker stops", pool)


def make_worker(pool: Pool, settings: Settings, client: Client, activities: list[Any]) -> Worker:
    """Make the worker of a pool; entering it begins to poll, leaving it lets running work rest."""
    at_once, deployment = _activities_at_once(pool, settings), deployment_of(pool, settings)
    return Worker(
        client,
        task_queue=queues.engine_queue(settings.engine) if pool is Pool.ENGINE else str(pool),
        workflows=[resolve(target) for target in POOLS[pool].workflows],
        activities=activities,
        activity_executor=ThreadPoolExecutor(at_once, thread_name_prefix="activity"),
        interceptors=[FailureInterceptor()],
        deployment_config=deployment,
        build_id=None if deployment else BUILD,
        max_concurrent_activities=at_once,
        max_cached_workflows=_CACHED_WORKFLOWS,
        max_concurrent_workflow_tasks=32,
        disable_eager_activity_execution=pool is Pool.EPISODE,
        max_heartbeat_throttle_interval=timedelta(seconds=240),
        graceful_shutdown_timeout=timedelta(seconds=settings.grace_seconds),
    )


def _activities_at_once(pool: Pool, settings: Settings) -> int:
    """Give the trainer one slot: it is one model on one device."""
    return {Pool.CONTROL: 16, Pool.EPISODE: settings.max_episodes, Pool.ENGINE: 4}.get(pool, 1)


def resolve(target: str) -> Any:
    """Import what ``module:name`` or ``module:Class.name`` names."""
    module, _, path = target.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _say_ready(pool: Pool) -> None:
    """Tell whoever started the process that it polls: touch the file of LOOPWRIGHT_READY_FILE."""
    _logger.info("%s worker polls", pool)
    ready = os.environ.get("LOOPWRIGHT_READY_FILE")
    if ready:
        Path(ready).write_text(f"{os.getpid()}\n")
