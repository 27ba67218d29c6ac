"""The runs of a loop's workflow, as the control pool's activities ask for them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import FailureError
from temporalio.service import RPCError, RPCStatusCode

from loopwright.contracts import ids
from loopwright.contracts.evaluations import EvaluationResult
from loopwright.contracts.failures import LoopEnded, LoopUnavailable, UserError
from loopwright.contracts.iterations import LoopProgress, LoopResult

RPC_TIMEOUT = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class LoopRun:
    """One run of a loop: what is between two of its continuations."""

    run_id: str
    first_run_id: str
    """The run the loop began with."""
    started_at: datetime
    is_open: bool


class LoopRuns:
    """The runs of the loop of one id, the newest first."""

    def __init__(self, client: Client, loop_id: str) -> None:
        self._client = client
        self.loop_id = loop_id
        self.workflow_id = ids.loop_workflow_id(loop_id)

    async def newest(self) -> LoopRun:
        """Find the newest run.

        Raises:
            UserError: there is no loop of this id.
            LoopUnavailable: the server does not answer.
        """
        return await self._run(None)

    async def earlier(self, run: LoopRun, *, since: datetime) -> AsyncIterator[str]:
        """Give the ids of the runs before ``run`` that were open at ``since`` or later."""
        while run.started_at > since:
            run_id = await self._continued(run.run_id)
            if run_id is None:
                return
            yield run_id
            run = await self._run(run_id)

    async def progress(self, run: LoopRun) -> LoopProgress:
        """Read the state of a run, open or closed.

        Raises:
            LoopUnavailable: nobody answers.
        """
        handle = self._client.get_workflow_handle(self.workflow_id, run_id=run.run_id)
        with told(self.loop_id):
            progress: LoopProgress = await handle.query(
                "progress", result_type=LoopProgress, rpc_timeout=RPC_TIMEOUT
            )
        return progress

    async def evaluation(self, name: str) -> EvaluationResult | None:
        """Read the result of an evaluation; None while it has not ended.

        Raises:
            LoopEnded: it failed.
            LoopUnavailable: the server does not answer.
        """
        handle = self._client.get_workflow_handle(
            ids.evaluation_path(self.workflow_id, name), result_type=EvaluationResult
        )
        try:
            found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
            if found.status is WorkflowExecutionStatus.RUNNING:
                return None
            result: EvaluationResult = await handle.result(rpc_timeout=RPC_TIMEOUT)
            return result
        except WorkflowFailureError as error:
            raise LoopEnded(
                f"evaluation {name} of loop {self.loop_id} failed: {_reason(error.cause)}"
            ) from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise LoopUnavailable(f"no answer about evaluation {name}: {error.message}") from error

    async def how_it_ended(self, run: LoopRun) -> str:
        """Say how a closed run ended: ``is stopped``, ``failed: loss is nan``.

        Raises:
            LoopUnavailable: the server does not answer.
        """
        handle = self._client.get_workflow_handle(
            self.workflow_id, run_id=run.run_id, result_type=LoopResult
        )
        try:
            with told(self.loop_id):
                return f"is {(await handle.result()).outcome}"
        except WorkflowFailureError as error:
            return f"failed: {_reason(error.cause)}"

    async def _run(self, run_id: str | None) -> LoopRun:
        handle = self._client.get_workflow_handle(self.workflow_id, run_id=run_id)
        with told(self.loop_id):
            found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
        return LoopRun(
            run_id=found.run_id,
            first_run_id=found.raw_description.workflow_execution_info.first_run_id,
            started_at=found.start_time,
            is_open=found.status is WorkflowExecutionStatus.RUNNING,
        )

    async def _continued(self, run_id: str) -> str | None:
        """Give the run that this one continues, if any."""
        handle = self._client.get_workflow_handle(self.workflow_id, run_id=run_id)
        with told(self.loop_id):
            event = await anext(aiter(handle.fetch_history_events(page_size=1)))
        started = event.workflow_execution_started_event_attributes
        return started.continued_execution_run_id or None


@contextmanager
def told(loop_id: str) -> Iterator[None]:
    """Raise what a loop or the server refuses as an error of this package.

    Raises:
        UserError: there is no such loop, or it refuses.
        LoopUnavailable: the server does not answer; another attempt can help.
    """
    try:
        yield
    except WorkflowUpdateFailedError as error:
        raise UserError(f"loop {loop_id} refuses: {_reason(error.cause)}") from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise UserError(
                f"there is no loop {loop_id!r}; start it, or delete the schedule"
            ) from error
        raise LoopUnavailable(f"no answer about loop {loop_id}: {error.message}") from error


def _reason(cause: BaseException | None) -> str:
    return cause.message if isinstance(cause, FailureError) else str(cause)
