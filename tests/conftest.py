"""Fixtures that several folders use."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from tests.temporal_servers import TemporalServers


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal_servers() -> AsyncIterator[TemporalServers]:
    servers = TemporalServers()
    yield servers
    await servers.stop()


@pytest.fixture
def is_sandboxed() -> bool:
    """Tell whether workflow code is checked as it runs; the tests of workflows say so."""
    return False


@pytest.fixture
async def temporal(temporal_servers: TemporalServers, is_sandboxed: bool) -> WorkflowEnvironment:
    """Give a namespace of the real Temporal server, with a clock of its own for each workflow."""
    client = await temporal_servers.new_namespace(is_sandboxed=is_sandboxed)
    return WorkflowEnvironment.from_client(client)
