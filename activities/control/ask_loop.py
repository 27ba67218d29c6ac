"""control.ask_loop: a loop takes an update, once whatever happens."""

import asyncio
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from loopwright.activities.control.loop_runs import RPC_TIMEOUT, LoopRun, LoopRuns, told
from loopwright.activities.control.schedule_counts import schedule_counts
from loopwright.contracts.failures import LoopError, LoopUnavailable, UserError
from loopwright.contracts.iterations import RunIterationsRequest
from loopwright.contracts.schedules import AskLoopRequest, AskLoopResult

_PATIENCE_SECONDS = 30
"""How long a worker may take to accept the update."""


class AskLoop:
    """Sends updates to loops."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="control.ask_loop")
    async def ask_loop(self, request: AskLoopRequest) -> AskLoopResult:
        """Send the update to the loop's newest run, unless a run has it already.

        A run takes an update of one id once. The update names the run it is meant for, and another
        attempt looks through the runs that may have it: so none is taken twice.

        Raises:
            UserError: there is no such loop, it has ended, or it refuses.
            LoopUnavailable: it could not be asked; another attempt can help.
        """
        runs = LoopRuns(self._client, request.loop_id)
        run = await runs.newest()
        answer = await self._earlier_answer(runs, run, request)
        if answer is None:
            answer = await self._send(runs, run, request)
        counts = await schedule_counts(self._client, request.schedule)
        return AskLoopResult(
            loop_run_id=run.first_run_id,
            ask=request.ask,
            last_iteration=answer if isinstance(answer, int) else None,
            num_skipped=counts.num_skipped,
            num_missed=counts.num_missed,
        )

    async def _earlier_answer(self, runs: LoopRuns, run: LoopRun, request: AskLoopRequest) -> Any:
        """Find what an earlier attempt was answered by a run before this one."""
        info = activity.info()
        if info.attempt == 1:
            return None
        async for run_id in runs.earlier(run, since=info.scheduled_time):
            handle = self._client.get_workflow_handle(runs.workflow_id, run_id=run_id)
            update = handle.get_update_handle(request.request_id, workflow_run_id=run_id)
            try:
                return await update.result(rpc_timeout=RPC_TIMEOUT)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
        return None

    async def _send(self, runs: LoopRuns, run: LoopRun, request: AskLoopRequest) -> Any:
        """Give what the run answers; a closed one answers what it was asked before."""
        handle = self._client.get_workflow_handle(runs.workflow_id, run_id=run.run_id)
        name = "run_iterations" if isinstance(request.ask, RunIterationsRequest) else "evaluate"
        with told(request.loop_id):
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    return await handle.execute_update(name, request.ask, id=request.request_id)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                raise _closed(run, request.loop_id) from error
            except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
                raise LoopUnavailable(
                    f"loop {request.loop_id} did not take {name!r} in time"
                ) from error


def _closed(run: LoopRun, loop_id: str) -> LoopError:
    if run.is_open:
        return LoopUnavailable(f"loop {loop_id} went on in another run meanwhile")
    return UserError(f"loop {loop_id} has ended; start it anew, or delete the schedule")
