"""Loops that continue as new, on the real server with fake activities."""

import asyncio

import pytest
from temporalio.client import Client

from loopwright.contracts.configs import IterationConfig
from loopwright.contracts.iterations import RunIterationsRequest, StopRequest
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop
from tests.workflows.test_loop import until_phase


@pytest.mark.usefixtures("short_runs")
async def test_long_loop_continues_as_new_and_loses_nothing(
    client: Client, fakes: FakeActivities
) -> None:
    count = 5
    config = small_config(
        num_iterations=count, iteration=IterationConfig(num_tasks=1, group_size=2)
    )
    handle = await start_loop(client, config)
    result = await handle.result()
    assert (result.num_iterations, result.num_episodes, result.num_lost) == (count, 2 * count, 0)
    assert result.checkpoint.policy.version == count
    assert [row.index for row in result.results] == list(range(3, count + 1))
    assert (await handle.describe()).run_id != handle.first_execution_run_id
    assert fakes.counts()["trainer.import_policy"] == 1


@pytest.mark.usefixtures("short_runs")
async def test_open_loop_that_continues_as_new_with_nothing_to_do_gives_its_engine_back(
    client: Client, fakes: FakeActivities
) -> None:
    iteration = IterationConfig(num_tasks=1, group_size=2)
    handle = await start_loop(client, small_config(num_iterations=None, iteration=iteration))
    await handle.execute_update("run_iterations", RunIterationsRequest(num_iterations=3))
    while (await handle.describe()).run_id == handle.first_execution_run_id:
        await asyncio.sleep(0.02)
    await until_phase(handle, "idle")
    assert fakes.holder is None
    await handle.execute_update("stop", StopRequest())
    assert (await handle.result()).num_iterations == 3


@pytest.mark.usefixtures("short_runs")
async def test_loop_that_is_stopped_as_it_continues_as_new_ends(
    client: Client, fakes: FakeActivities
) -> None:
    may_release = fakes.hold["engine.release_lease"] = asyncio.Event()
    iteration = IterationConfig(num_tasks=1, group_size=2)
    handle = await start_loop(client, small_config(num_iterations=None, iteration=iteration))
    await handle.execute_update("run_iterations", RunIterationsRequest(num_iterations=3))
    while not fakes.counts()["engine.release_lease"]:
        await asyncio.sleep(0.02)
    await handle.execute_update("stop", StopRequest())
    may_release.set()
    result = await asyncio.wait_for(handle.result(), 30)
    assert (result.outcome, result.num_iterations) == ("stopped", 3)
