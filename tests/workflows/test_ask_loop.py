"""The activities that ask a loop and wait for it, on the real server."""

import asyncio
import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import ActivityEnvironment

from loopwright.activities.control.ask_loop import AskLoop
from loopwright.activities.control.await_loop import AwaitLoop
from loopwright.contracts.evaluations import EvaluateRequest
from loopwright.contracts.failures import LoopEnded
from loopwright.contracts.iterations import RunIterationsRequest
from loopwright.contracts.schedules import AskLoopRequest, AskLoopResult, AwaitLoopRequest
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop
from tests.workflows.test_loop import progress, until_phase

THREE = RunIterationsRequest(num_iterations=3)


async def ask(
    client: Client, ask: RunIterationsRequest | EvaluateRequest, *, attempt: int, since: datetime
) -> AskLoopResult:
    """Make one attempt of the activity, first scheduled at ``since``."""
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=attempt, scheduled_time=since)
    request = AskLoopRequest(loop_id="open", request_id="firing", ask=ask, schedule="nightly")
    result: AskLoopResult = await environment.run(AskLoop(client).ask_loop, request)
    return result


async def later_run(loop: WorkflowHandle[Any, Any]) -> str:
    """Wait until the loop has continued as new; give the run."""
    while (run_id := (await loop.describe()).run_id) == loop.first_execution_run_id:
        await asyncio.sleep(0.02)
    return run_id


async def test_loop_that_is_asked_again_runs_its_iterations_once(client: Client) -> None:
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    since = datetime.now(UTC)
    answers = [await ask(client, THREE, attempt=attempt, since=since) for attempt in (1, 2)]
    assert [answer.last_iteration for answer in answers] == [3, 3]
    assert (await progress(loop)).num_requested == 3


@pytest.mark.usefixtures("short_runs")
async def test_loop_that_has_continued_as_new_is_not_asked_twice(client: Client) -> None:
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    since = datetime.now(UTC)
    first = await ask(client, THREE, attempt=1, since=since)
    await later_run(loop)
    again = await ask(client, THREE, attempt=2, since=since)
    assert again == first
    assert (await progress(loop)).num_requested == 3


@pytest.mark.usefixtures("short_runs")
async def test_request_that_no_run_has_taken_is_taken_by_the_newest(client: Client) -> None:
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    since = datetime.now(UTC)
    await loop.execute_update("run_iterations", THREE)
    await later_run(loop)
    assert (await ask(client, THREE, attempt=2, since=since)).last_iteration == 6


async def test_loop_that_ended_after_it_was_asked_still_tells_what_it_answered(
    client: Client,
) -> None:
    loop = await start_loop(client, small_config(target_pass_rate=0.5, num_iterations=None), "open")
    since = datetime.now(UTC)
    first = await ask(client, THREE, attempt=1, since=since)
    await loop.result()
    assert await ask(client, THREE, attempt=2, since=since) == first


async def test_wait_for_a_loop_that_was_started_anew_ends_by_its_name(client: Client) -> None:
    await start_loop(client, small_config(num_iterations=None), "open")
    asked = await ask(client, THREE, attempt=1, since=datetime.now(UTC))
    other = asked.model_copy(update={"loop_run_id": "another"})
    with pytest.raises(LoopEnded, match="loop open was started anew before"):
        await ActivityEnvironment().run(
            AwaitLoop(client).await_loop, AwaitLoopRequest(loop_id="open", asked=other)
        )


async def test_wait_gives_way_when_its_worker_stops(client: Client, fakes: FakeActivities) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    asked = await ask(client, THREE, attempt=1, since=datetime.now(UTC))
    await until_phase(loop, "iterating")
    environment = ActivityEnvironment()
    environment.worker_shutdown()
    result = await environment.run(
        AwaitLoop(client).await_loop, AwaitLoopRequest(loop_id="open", asked=asked)
    )
    fakes.hold["trainer.train_step"].set()
    assert not result.is_done
