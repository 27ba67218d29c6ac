"""One firing of a schedule, against a loop with fake activities on the real server."""

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from loopwright.contracts import ids, queues
from loopwright.contracts.iterations import StopRequest
from loopwright.contracts.schedules import (
    ScheduledEvaluation,
    ScheduledIterations,
    ScheduledWorkInput,
    ScheduledWorkResult,
    Work,
)
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop
from tests.workflows.test_loop import until_phase

ONE = ScheduledIterations(num_iterations=1)


async def fire(client: Client, loop_id: str, work: Work = ONE) -> WorkflowHandle[Any, Any]:
    """Start what a schedule starts."""
    return await client.start_workflow(
        ids.SCHEDULED_WORK,
        ScheduledWorkInput(schedule="nightly", loop_id=loop_id, work=work),
        id=f"firing/{uuid.uuid4().hex[:8]}",
        task_queue=queues.CONTROL,
        result_type=ScheduledWorkResult,
    )


async def refusal(firing: WorkflowHandle[Any, Any]) -> ApplicationError:
    """Give the reason for which a firing fails."""
    with pytest.raises(WorkflowFailureError) as caught:
        await firing.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


async def test_firing_ends_when_the_iterations_it_asked_for_are_done(client: Client) -> None:
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    result = await (await fire(client, "open", ScheduledIterations(num_iterations=2))).result()
    assert result.last_iteration == 2
    assert [row.index for row in result.iterations] == [1, 2]
    await until_phase(loop, "idle")


async def test_firings_at_once_get_iterations_of_their_own(client: Client) -> None:
    await start_loop(client, small_config(num_iterations=None), "open")
    firings = [await fire(client, "open", ScheduledIterations(num_iterations=2)) for _ in range(3)]
    results = await asyncio.gather(*(firing.result() for firing in firings))
    numbers = [row.index for result in results for row in result.iterations]
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]


async def test_firing_waits_for_a_loop_that_is_paused(client: Client) -> None:
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    await until_phase(loop, "idle")
    await loop.execute_update("pause")
    firing = await fire(client, "open")
    while (await loop.query("progress"))["num_requested"] != 1:
        await asyncio.sleep(0.02)
    await loop.execute_update("resume")
    assert (await firing.result()).last_iteration == 1


async def test_firing_at_a_loop_that_does_not_exist_fails_by_its_name(client: Client) -> None:
    reason = await refusal(await fire(client, "nothing"))
    assert reason.type == "UserError"
    assert reason.message.startswith("there is no loop 'nothing'; start it")


async def test_firing_at_a_loop_that_has_ended_fails_with_what_to_do(client: Client) -> None:
    await (await start_loop(client, small_config(num_iterations=0), "first")).result()
    reason = await refusal(await fire(client, "first"))
    assert reason.message == "loop first has ended; start it anew, or delete the schedule"


async def test_firing_at_a_loop_that_is_ending_fails_with_its_refusal(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    loop = await start_loop(client, small_config(), "first")
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await loop.execute_update("stop", StopRequest())
    reason = await refusal(await fire(client, "first"))
    fakes.hold["trainer.train_step"].set()
    assert reason.message.startswith("loop first refuses: loop first is ending")


async def test_firing_fails_when_its_loop_is_stopped_before(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    firing = await fire(client, "open", ScheduledIterations(num_iterations=3))
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await loop.execute_update("stop", StopRequest())
    fakes.hold["trainer.train_step"].set()
    reason = await refusal(firing)
    assert reason.type == "LoopEnded"
    assert reason.message.startswith("loop open is stopped; 2 of the 3 iterations it was asked")


async def test_firing_fails_with_the_reason_for_which_its_loop_failed(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["trainer.train_step"] = [
        ApplicationError("loss is nan", type="TrainingDiverged", non_retryable=True)
    ]
    await start_loop(client, small_config(num_iterations=None), "open")
    reason = await refusal(await fire(client, "open"))
    assert "loop open failed: iteration 1 failed:" in reason.message
    assert "loss is nan" in reason.message
    assert "1 of the 1 iterations it was asked for are not done" in reason.message


async def test_cancelled_firing_waits_no_longer_and_its_loop_goes_on(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    firing = await fire(client, "open")
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await firing.cancel()
    with pytest.raises(WorkflowFailureError):
        await firing.result()
    fakes.hold["trainer.train_step"].set()
    assert len((await until_phase(loop, "idle")).results) == 1


async def test_firing_ends_when_the_evaluation_it_asked_for_is_done(client: Client) -> None:
    await start_loop(client, small_config(num_iterations=None), "open")
    work = ScheduledEvaluation(num_tasks=2, samples=3)
    result = await (await fire(client, "open", work)).result()
    assert result.last_iteration is None
    assert (result.evaluation.num_tasks, result.evaluation.samples) == (2, 3)
    evaluations = [each async for each in client.list_workflows("WorkflowType = 'Evaluation'")]
    assert [each.id.rpartition("/")[2].startswith("nightly-") for each in evaluations] == [True]


async def test_firing_fails_when_its_loop_is_stopped_before_the_evaluation(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    loop = await start_loop(client, small_config(num_iterations=None), "open")
    firing = await fire(client, "open", ScheduledEvaluation())
    while not fakes.counts()["episode.take_turns"]:
        await asyncio.sleep(0.02)
    await loop.execute_update("stop", StopRequest(now=True))
    reason = await refusal(firing)
    fakes.hold["episode.take_turns"].set()
    assert reason.type == "LoopEnded"
    assert "it was asked for is not done" in reason.message
