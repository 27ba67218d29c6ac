"""An activity of steps ends after the one it is at when its worker stops or its workflow parks.

What it has done by then is an ordinary result: nothing has failed, and no attempt is spent.
"""

import asyncio
from collections.abc import Coroutine

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError


class Rest:
    """Tells an activity when to end between two steps, and lets the step it is at end."""

    def __init__(self) -> None:
        self._is_parked = False

    def is_due(self) -> bool:
        """Tell whether no further step is wanted of this attempt."""
        return self._is_parked or activity.is_worker_shutdown()

    async def after(self, step: Coroutine[None, None, None]) -> None:
        """Run a step to its end, also where the workflow parks meanwhile.

        Raises:
            CancelledError: nobody waits for the end of the step, or there is no time left for it.
        """
        running = asyncio.create_task(step)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            try:
                self._is_parked = await _is_awaited()
                if self._is_parked:
                    await _until_done_or_shutdown(running)
            finally:
                running.cancel()
            await running


async def _until_done_or_shutdown(running: asyncio.Task[None]) -> None:
    """Wait for the end of a step; a stopping worker does not cancel what was cancelled before."""
    stopping = asyncio.create_task(activity.wait_for_worker_shutdown())
    try:
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()


async def _is_awaited() -> bool:
    """Tell whether the workflow that cancelled this activity waits for what it comes to.

    One that was cancelled itself has ended by then. Where the server does not answer, the step ends
    for nothing at worst.
    """
    details = activity.cancellation_details()
    if details is None or not details.cancel_requested:
        return False
    info = activity.info()
    assert info.workflow_id is not None
    handle = activity.client().get_workflow_handle(info.workflow_id, run_id=info.workflow_run_id)
    try:
        description = await handle.describe()
    except RPCError:
        return True
    return description.status is WorkflowExecutionStatus.RUNNING
