"""Heartbeats while an activity works, at half of its heartbeat timeout."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator

from temporalio import activity


@contextlib.asynccontextmanager
async def heartbeating() -> AsyncIterator[None]:
    """Heartbeat while the block of an asynchronous activity runs."""
    beats = asyncio.create_task(_beat_for_ever())
    try:
        yield
    finally:
        beats.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beats


@contextlib.contextmanager
def heartbeating_thread() -> Iterator[None]:
    """Heartbeat while the block of a synchronous activity runs, from a thread beside it."""
    ended = threading.Event()
    context = contextvars.copy_context()
    beats = threading.Thread(target=context.run, args=(_beat_until, ended), daemon=True)
    beats.start()
    try:
        yield
    finally:
        ended.set()
        beats.join()


async def _beat_for_ever() -> None:
    interval = _interval_seconds()
    while interval is not None:
        # The first one is not due yet, and most activities are done before it is.
        await asyncio.sleep(interval)
        activity.heartbeat()


def _beat_until(ended: threading.Event) -> None:
    interval = _interval_seconds()
    while interval is not None and not ended.wait(interval):
        activity.heartbeat()


def _interval_seconds() -> float | None:
    """Give half of the heartbeat timeout; None for an activity without one."""
    timeout = activity.info().heartbeat_timeout
    return timeout.total_seconds() / 2 if timeout else None
