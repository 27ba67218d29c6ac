"""Two builds of the workers side by side: what is in flight ends on the one it began on."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentVersionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from loopwright.contracts.iterations import RunIterationsRequest, StopRequest
from loopwright.contracts.queues import Pool
from loopwright.workers.bootstrap import make_worker
from loopwright.workers.settings import Settings
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop
from tests.workflows.inputs import episode_input, start_episode

TURN = ("episode.take_turns", "episode.grade_episode")
WORK = ("episode.take_turns", "control.score_group", "trainer.train_step")


@pytest.fixture
async def engine(temporal: WorkflowEnvironment) -> AsyncIterator[FakeActivities]:
    """Run the worker of the engine, which serves all builds."""
    fakes, settings = FakeActivities(), Settings(build_id="any")
    async with make_worker(Pool.ENGINE, settings, temporal.client, fakes.all()):
        yield fakes


@asynccontextmanager
async def build(client: Client, build_id: str | None) -> AsyncIterator[FakeActivities]:
    """Run a worker of each other pool; one without a build id serves all builds."""
    fakes = FakeActivities()
    settings = Settings(build_id=build_id)
    async with AsyncExitStack() as stack:
        for pool in (Pool.CONTROL, Pool.EPISODE, Pool.TRAINER):
            await stack.enter_async_context(make_worker(pool, settings, client, fakes.all()))
        yield fakes


NUM_QUEUES = 5
"""Control and episode pool have one of workflows and one of activities each, the trainer one."""


async def make_current(client: Client, build_id: str) -> None:
    """Send new workflows to a build, once its workers have polled every queue."""
    version = WorkerDeploymentVersion(deployment_name="loopwright", build_id=build_id)
    described = DescribeWorkerDeploymentVersionRequest(
        namespace=client.namespace, deployment_version=version
    )
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace, deployment_name="loopwright", build_id=build_id
    )
    while True:
        try:
            found = await client.workflow_service.describe_worker_deployment_version(described)
            if len(found.version_task_queues) == NUM_QUEUES:
                await client.workflow_service.set_worker_deployment_current_version(request)
                return
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        await asyncio.sleep(0.1)


async def builds_of(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Name the builds that a workflow was on, in order, each once."""
    tasks = [
        event.workflow_task_completed_event_attributes.deployment_version.build_id
        for event in (await handle.fetch_history()).events
        if event.HasField("workflow_task_completed_event_attributes")
    ]
    return list(dict.fromkeys(tasks))


async def until_called(fakes: FakeActivities, name: str, *, times: int = 1) -> None:
    while fakes.counts()[name] < times:
        await asyncio.sleep(0.02)


async def test_episode_in_flight_ends_on_its_build_while_a_new_one_begins_on_the_current(
    temporal: WorkflowEnvironment,
) -> None:
    client = temporal.client
    async with build(client, "0.1.0") as old:
        await make_current(client, "0.1.0")
        old.hold["episode.take_turns"] = asyncio.Event()
        in_flight = await start_episode(client, episode_input())
        await until_called(old, "episode.take_turns")
        async with build(client, "0.2.0") as new:
            await make_current(client, "0.2.0")
            fresh = await start_episode(client, episode_input())
            assert (await fresh.result()).status == "graded"
            old.hold["episode.take_turns"].set()
            assert (await in_flight.result()).status == "graded"
            assert [old.counts()[name] for name in TURN] == [1, 1]
            assert [new.counts()[name] for name in TURN] == [1, 1]
            assert await builds_of(in_flight) == ["0.1.0"]
            assert await builds_of(fresh) == ["0.2.0"]


@pytest.mark.usefixtures("engine")
async def test_loop_goes_over_to_the_current_build_after_the_iteration_under_way(
    temporal: WorkflowEnvironment,
) -> None:
    client = temporal.client
    async with build(client, "0.1.0") as old:
        await make_current(client, "0.1.0")
        old.hold["episode.take_turns"] = asyncio.Event()
        handle = await start_loop(client, small_config(num_iterations=3))
        await until_called(old, "episode.take_turns")
        async with build(client, "0.2.0") as new:
            await make_current(client, "0.2.0")
            old.hold["episode.take_turns"].set()
            result = await handle.result()
            assert [row.outcome for row in result.results] == ["trained"] * 3
            assert [old.counts()[name] for name in WORK] == [12, 3, 1]
            assert [new.counts()[name] for name in WORK] == [24, 6, 2]
            iterations = [
                client.get_workflow_handle(f"{handle.id}/iteration/{k:06d}") for k in (1, 2, 3)
            ]
            assert [await builds_of(each) for each in iterations] == [
                ["0.1.0"],
                ["0.2.0"],
                ["0.2.0"],
            ]


async def test_idle_loop_goes_over_once_it_is_asked_for_more(
    temporal: WorkflowEnvironment, engine: FakeActivities
) -> None:
    client = temporal.client
    async with build(client, "0.1.0") as old:
        await make_current(client, "0.1.0")
        handle = await start_loop(client, small_config(num_iterations=None))
        await run_one(handle, engine, number=1)
        async with build(client, "0.2.0") as new:
            await make_current(client, "0.2.0")
            number = 1
            while not new.counts()["trainer.train_step"]:
                number += 1
                await run_one(handle, engine, number=number)
            counts = Counter(old.counts()) + Counter(new.counts())
            assert [counts[name] for name in WORK] == [12 * number, 3 * number, number]
            await handle.execute_update("stop", StopRequest())
            assert (await handle.result()).num_iterations == number


async def run_one(handle: WorkflowHandle[Any, Any], engine: FakeActivities, *, number: int) -> None:
    """Ask a loop for one more iteration, and wait until it has given its engine back."""
    await handle.execute_update("run_iterations", RunIterationsRequest(num_iterations=1))
    await until_called(engine, "engine.release_lease", times=number)


@pytest.mark.parametrize("build_id", ["0.1.0", None])
async def test_worker_says_which_build_it_is_only_where_it_was_told(
    temporal: WorkflowEnvironment, build_id: str | None
) -> None:
    async with build(temporal.client, build_id):
        if build_id:
            await make_current(temporal.client, build_id)
        handle = await start_episode(temporal.client, episode_input())
        await handle.result()
        assert await builds_of(handle) == [build_id or ""]
