"""The client under test, on a server whose workers are fakes."""

import pytest
from temporalio.client import Client

from loopwright.sdk import LoopClient
from tests.workflows.conftest import client as temporal_client
from tests.workflows.conftest import fakes, short_runs

__all__ = ["fakes", "loops", "short_runs", "temporal_client"]


@pytest.fixture
def loops(temporal_client: Client) -> LoopClient:
    return LoopClient(temporal_client)
