"""Namespaces that lack what loops need, on the real server."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    RemoveSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from loopwright.contracts import search_attributes
from loopwright.contracts.failures import UserError
from loopwright.embedded import temporal_settings
from loopwright.sdk import LoopClient
from loopwright.sdk.namespaces import check_search_attributes, create_search_attributes
from tests.binaries import binary
from tests.cli.conftest import run_command
from tests.workflows.conftest import small_config


@pytest.fixture
async def lacking(temporal: WorkflowEnvironment) -> Client:
    """Give a namespace that lacks two attributes, and has one of another type."""
    client = temporal.client
    await client.operator_service.remove_search_attributes(
        RemoveSearchAttributesRequest(
            namespace=client.namespace, search_attributes=["LoopStatus", "TaskId", "Reward"]
        )
    )
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(
            namespace=client.namespace,
            search_attributes={"Reward": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD},
        )
    )
    return client


async def test_loop_is_not_started_where_a_search_attribute_is_missing(lacking: Client) -> None:
    with pytest.raises(UserError, match="lacks search attributes that loops set"):
        await LoopClient(lacking).start(small_config(), loop_id="first")
    assert await LoopClient(lacking).list_loops() == []


async def test_named_commands_prepare_the_namespace(lacking: Client) -> None:
    with pytest.raises(UserError) as caught:
        await check_search_attributes(lacking)
    _, *lines = str(caught.value).splitlines()
    assert [line.split(" --address")[0].split("search-attribute ")[1] for line in lines] == [
        "create --name LoopStatus --type Keyword",
        "create --name TaskId --type Keyword",
        "remove --name Reward",
        "create --name Reward --type Double",
    ]
    for line in lines:
        program, *words = line.split()
        subprocess.run([binary(program), *words], check=True, capture_output=True, input=b"y\n")
    await check_search_attributes(lacking)


async def test_worker_ends_with_the_names_of_missing_search_attributes(
    lacking: Client, tmp_path: Path
) -> None:
    address = lacking.service_client.config.target_host
    environment = {
        "LOOPWRIGHT_TEMPORAL_ADDRESS": address,
        "LOOPWRIGHT_TEMPORAL_NAMESPACE": lacking.namespace,
    }
    done = await run_command("worker", "control", folder=tmp_path, environment=environment)
    assert done.status == 2
    assert f"create --name LoopStatus --type Keyword --address {address}" in done.err


async def test_several_workers_may_create_missing_search_attributes_at_once(
    temporal: WorkflowEnvironment,
) -> None:
    client = temporal.client
    request = RemoveSearchAttributesRequest(
        namespace=client.namespace, search_attributes=list(search_attributes.TYPES)
    )
    await client.operator_service.remove_search_attributes(request)
    await asyncio.gather(*(create_search_attributes(client) for _ in range(4)))
    await check_search_attributes(client)


def test_list_for_operators_is_the_one_that_loops_set() -> None:
    assert temporal_settings.search_attributes() == search_attributes.TYPES
