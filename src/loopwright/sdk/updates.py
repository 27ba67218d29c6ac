"""Requests to a running loop, which a worker of the control pool takes, now or later."""

import asyncio
import logging
import uuid
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.update.v1 import UpdateRef
from temporalio.api.workflowservice.v1 import PollWorkflowExecutionUpdateRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from loopwright.contracts import ids
from loopwright.sdk.server_errors import LoopUnanswered

logger = logging.getLogger(__name__)

SILENT_SECONDS = 1
"""How long nothing is said of the wait."""
PATIENCE_SECONDS = 15
"""How long a worker may take. What was meant for one that died goes to another after 10 s."""
_STAGE_TIMEOUT = timedelta(seconds=2)


async def execute_update(
    client: Client,
    workflow: WorkflowHandle[Any, Any],
    name: str,
    *request: BaseModel,
    silent_seconds: float = SILENT_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Any:
    """Execute an update, and give up when no worker takes it.

    Args:
        client: of the workflow's namespace.
        workflow: a loop's.
        name: of the update.
        request: what the update takes; nothing, or one model.
        silent_seconds: how long nothing is said of the wait.
        patience_seconds: how long it is waited in all.

    Raises:
        LoopUnanswered: none did; the message tells whether one that comes later will.
    """
    update_id = str(uuid.uuid4())
    answer = asyncio.ensure_future(_execute(workflow, name, update_id, *request))
    try:
        await asyncio.wait({answer}, timeout=silent_seconds)
        if not answer.done():
            logger.warning("waiting for a worker of the control pool to take %r", name)
            await asyncio.wait({answer}, timeout=patience_seconds - silent_seconds)
        if answer.done():
            return answer.result()
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)
    fate = (
        "the Temporal server keeps the request for the first worker that comes, unless the server "
        "is restarted before"
        if await is_kept(client, workflow.id, update_id)
        else "the request is lost: ask again"
    )
    loop_id = workflow.id.removeprefix(ids.loop_workflow_id(""))
    raise LoopUnanswered(
        f"no worker of the control pool has taken {name!r} of loop {loop_id} in "
        f"{patience_seconds:g} s (`loopwright status` shows what runs); {fate}"
    )


async def is_kept(client: Client, workflow_id: str, update_id: str) -> bool:
    """Tell whether the server has an update that nobody waits for any more.

    It keeps one in its memory until a worker takes it, and forgets it when it is restarted.

    Raises:
        RPCError: the server cannot tell.
    """
    update = UpdateRef(
        workflow_execution=WorkflowExecution(workflow_id=workflow_id), update_id=update_id
    )
    try:
        await client.workflow_service.poll_workflow_execution_update(
            PollWorkflowExecutionUpdateRequest(namespace=client.namespace, update_ref=update),
            timeout=_STAGE_TIMEOUT,
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True


async def _execute(
    workflow: WorkflowHandle[Any, Any], name: str, update_id: str, *request: BaseModel
) -> Any:
    """Execute an update again when the server could not take it at that moment.

    It says so when something else happened to the workflow meanwhile; nothing is done then.
    """
    while True:
        try:
            return await workflow.execute_update(name, args=list(request), id=update_id)
        except RPCError as error:
            if error.status is not RPCStatusCode.FAILED_PRECONDITION:
                raise
            await asyncio.sleep(0.1)
