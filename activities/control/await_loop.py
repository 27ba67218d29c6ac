"""control.await_loop: wait until a loop has done what it was asked."""

import asyncio
import time
from contextlib import suppress

from temporalio import activity
from temporalio.client import Client

from loopwright.activities.control.loop_runs import LoopRun, LoopRuns
from loopwright.activities.heartbeats import heartbeating
from loopwright.contracts.evaluations import EvaluateRequest
from loopwright.contracts.failures import LoopEnded, LoopUnavailable
from loopwright.contracts.iterations import RunIterationsRequest
from loopwright.contracts.schedules import AwaitLoopRequest, AwaitLoopResult
from loopwright.core import asked_iterations

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0
_LONGEST_WAIT_SECONDS = 3600.0
"""After which another activity goes on: no attempt is lost for the age of one."""

_ADVICE = "start it anew, or delete the schedule"


class AwaitLoop:
    """Looks at loops until they are done."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="control.await_loop")
    async def await_loop(self, request: AwaitLoopRequest) -> AwaitLoopResult:
        """Give what has come of the request, or, after an hour or with the worker, nothing yet.

        Raises:
            LoopEnded: the loop ended before.
        """
        give_up_at = time.monotonic() + _LONGEST_WAIT_SECONDS
        pause = _FIRST_PAUSE_SECONDS
        async with heartbeating():
            while True:
                result = await self._look(request)
                if result is not None:
                    return result
                if activity.is_worker_shutdown() or time.monotonic() > give_up_at:
                    return AwaitLoopResult(is_done=False)
                with suppress(TimeoutError):
                    await asyncio.wait_for(activity.wait_for_worker_shutdown(), pause)
                pause = min(1.5 * pause, _LONGEST_PAUSE_SECONDS)

    async def _look(self, request: AwaitLoopRequest) -> AwaitLoopResult | None:
        """Give the result; None while there is none, or nobody answers."""
        loop = LoopRuns(self._client, request.loop_id)
        ask = request.asked.ask
        try:
            run = await loop.newest()
            if run.first_run_id != request.asked.loop_run_id:
                raise LoopEnded(
                    f"loop {request.loop_id} was started anew before it had done what it was asked"
                )
            if isinstance(ask, EvaluateRequest):
                return await self._look_at_evaluation(loop, run, ask)
            return await self._look_at_iterations(loop, run, ask, request.asked.last_iteration or 0)
        except LoopUnavailable as error:
            activity.logger.warning("%s; asking again", error)
            return None

    async def _look_at_iterations(
        self, loop: LoopRuns, run: LoopRun, ask: RunIterationsRequest, last: int
    ) -> AwaitLoopResult | None:
        results = (await loop.progress(run)).results
        rows = asked_iterations.results_of(results, num_iterations=ask.num_iterations, last=last)
        if rows is not None:
            return AwaitLoopResult(is_done=True, iterations=rows)
        if not run.is_open:
            missing = asked_iterations.num_missing(
                results, num_iterations=ask.num_iterations, last=last
            )
            raise LoopEnded(
                f"loop {loop.loop_id} {await loop.how_it_ended(run)}; {missing} of the "
                f"{ask.num_iterations} iterations it was asked for are not done; {_ADVICE}"
            )
        return None

    async def _look_at_evaluation(
        self, loop: LoopRuns, run: LoopRun, ask: EvaluateRequest
    ) -> AwaitLoopResult | None:
        result = await loop.evaluation(ask.name)
        if result is not None and result.outcome == "completed":
            return AwaitLoopResult(is_done=True, evaluation=result)
        if result is not None or not run.is_open:
            how = "goes on" if run.is_open else await loop.how_it_ended(run)
            raise LoopEnded(
                f"loop {loop.loop_id} {how}; the evaluation {ask.name} it was asked for "
                f"is not done; {_ADVICE}"
            )
        return None
