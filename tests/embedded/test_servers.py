"""The platform's own Temporal and S3 servers under the supervisor."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest

from loopwright.adapters.s3_store import S3ObjectStore
from loopwright.contracts.failures import StoreError
from loopwright.embedded.children import build_plan
from loopwright.embedded.credentials import load_credentials
from loopwright.embedded.options import StackOptions
from loopwright.embedded.plan import Plan
from loopwright.embedded.ports import ChosenPorts
from loopwright.embedded.stack import Stack, StackInfo, stack_environment
from loopwright.embedded.state_folder import StateFolder
from loopwright.embedded.temporal_settings import dynamic_config, search_attributes
from loopwright.workers.connection import connect
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store
from tests.servers import free_port

pytestmark = pytest.mark.s3


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """Give the platform with its first two processes only."""
    folder = StateFolder(tmp_path)

    def make_plan() -> Plan:
        ports = ChosenPorts(temporal=free_port(), ui=free_port(), s3=free_port(), engine=1)
        plan = build_plan(folder, StackOptions(), ports, load_credentials(folder))
        return plan.model_copy(update={"children": plan.children[:2]})

    stack = Stack(tmp_path, make_plan=make_plan)
    yield stack
    stack.stop()


async def test_workers_settings_reach_both_servers(stack: Stack) -> None:
    settings = Settings.from_environment(stack_environment(stack.ensure_running()))
    store = open_store(settings)
    store.put("key", b"content")
    assert store.get("key") == b"content"
    client = await connect(settings)
    known = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace="default")
    )
    assert search_attributes().keys() <= known.custom_attributes.keys()


def test_store_refuses_other_keys(stack: Stack) -> None:
    info = stack.ensure_running()
    store = S3ObjectStore(
        "loopwright",
        endpoint=info.s3_endpoint,
        access_key=info.s3_access_key,
        secret_key="something-else",
    )
    with pytest.raises(StoreError, match=r"403|SignatureDoesNotMatch|Forbidden"):
        store.ensure_bucket()


def test_acknowledged_objects_survive_a_killed_server(stack: Stack, tmp_path: Path) -> None:
    info = stack.ensure_running()
    settings = Settings.from_environment(stack_environment(info))
    open_store(settings).put("key", b"content")
    os.kill(info.children["s3"].pid or 0, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while not _has_restarted(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert open_store(settings).get("key") == b"content"


def test_settings_are_json_values() -> None:
    assert dynamic_config()["history.workflowIdReuseMinimalInterval"] == '"0s"'
    assert dynamic_config()["matching.enableFairness"] == "true"


def _has_restarted(state: Path) -> bool:
    info = StackInfo.load(state)
    return info is not None and info.is_healthy and info.children["s3"].restarts == 1
