"""What an engine worker asks of the Temporal server."""

import uuid

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from loopwright.contracts.failures import LoopUnavailable
from loopwright.workers.compose_engine import is_running
from tests.soak.link import Link


async def test_workflow_that_the_server_does_not_know_is_not_running(
    temporal: WorkflowEnvironment,
) -> None:
    assert not await is_running(temporal.client, f"loop/{uuid.uuid4()}")


async def test_server_that_is_away_is_told_as_such(temporal: WorkflowEnvironment) -> None:
    async with Link() as link:
        link.upstream_port = int(temporal.client.service_client.config.target_host.split(":")[1])
        client = await Client.connect(f"127.0.0.1:{link.port}")
    with pytest.raises(LoopUnavailable, match="no answer about loop/x"):
        await is_running(client, "loop/x")
