"""Requests to loops while no worker of the control pool runs."""

import asyncio
import logging

import pytest
from temporalio.testing import WorkflowEnvironment

from loopwright.contracts import ids
from loopwright.sdk import LoopClient
from loopwright.sdk.server_errors import LoopUnanswered
from loopwright.sdk.updates import execute_update, is_kept
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, workers


async def test_request_that_no_worker_takes_waits_for_the_first_that_comes(
    temporal: WorkflowEnvironment, fakes: FakeActivities, caplog: pytest.LogCaptureFixture
) -> None:
    client = temporal.client
    handle = await LoopClient(client).start(small_config(num_iterations=None), loop_id="first")
    workflow = client.get_workflow_handle(ids.loop_workflow_id("first"))
    with caplog.at_level(logging.WARNING), pytest.raises(LoopUnanswered) as caught:
        await execute_update(client, workflow, "pause", silent_seconds=0.1, patience_seconds=0.3)
    assert "waiting for a worker of the control pool to take 'pause'" in caplog.text
    assert "has taken 'pause' of loop first in 0.3 s" in str(caught.value)
    assert "the Temporal server keeps the request for the first worker that" in str(caught.value)
    async with workers(client, fakes):
        while (await handle.progress()).status != "paused":
            await asyncio.sleep(0.05)


async def test_request_that_the_server_does_not_have_is_not_called_kept(
    temporal: WorkflowEnvironment,
) -> None:
    await LoopClient(temporal.client).start(small_config(), loop_id="first")
    assert not await is_kept(temporal.client, ids.loop_workflow_id("first"), "unknown")
