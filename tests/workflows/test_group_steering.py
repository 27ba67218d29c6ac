"""Episodes of a running group that are cancelled or requeued."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from loopwright.contracts.groups import EpisodeRequest, GroupResult
from tests.fakes import FakeActivities
from tests.workflows.inputs import group_input, start_group
from tests.workflows.test_park import D2, half_done, heads_of, until, until_group_counts


async def steer(handle: WorkflowHandle[Any, Any], update: str, index: int) -> None:
    await handle.execute_update(update, EpisodeRequest(index=index))


async def refusal(handle: WorkflowHandle[Any, Any], index: int) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await steer(handle, "cancel_episode", index)
    assert isinstance(refused.value.cause, ApplicationError)
    return refused.value.cause.message


async def end(handle: WorkflowHandle[Any, GroupResult], fakes: FakeActivities) -> GroupResult:
    fakes.hold["episode.take_turns"].set()
    return await handle.result()


async def test_cancelled_episode_is_counted_and_the_group_scored_without_it(
    client: Client, fakes: FakeActivities
) -> None:
    handle = await half_done(client, fakes)
    await steer(handle, "cancel_episode", 2)
    result = await end(handle, fakes)
    assert (result.num_episodes, result.num_valid, result.num_cancelled) == (4, 3, 1)
    assert (result.is_admitted, result.num_replaced) == (True, 0)


async def test_group_is_not_admitted_when_too_many_of_its_episodes_were_cancelled(
    client: Client, fakes: FakeActivities
) -> None:
    handle = await half_done(client, fakes)
    for index in (2, 3):
        await steer(handle, "cancel_episode", index)
    result = await end(handle, fakes)
    assert (result.is_admitted, result.num_cancelled, result.dropped_by) == (False, 2, "")


async def test_requeued_episode_goes_on_from_its_newest_turn_and_loses_nothing(
    client: Client, fakes: FakeActivities
) -> None:
    handle = await half_done(client, fakes)
    await steer(handle, "requeue_episode", 2)
    await until(lambda: heads_of(fakes, 2) == [0, 1, 2])
    result = await end(handle, fakes)
    (again,) = [
        request
        for request in fakes.requests("episode.take_turns")
        if request.episode.index == 2 and request.head == D2
    ]
    assert again.episode.resume_from == D2
    assert (result.num_valid, result.num_cancelled, result.num_replaced) == (4, 0, 0)


async def test_only_an_episode_under_way_can_be_steered(
    client: Client, fakes: FakeActivities
) -> None:
    handle = await half_done(client, fakes)
    assert await refusal(handle, 0) == "it has ended: graded"
    assert await refusal(handle, 4) == "there is no such episode; its group has begun 4"
    await end(handle, fakes)


async def test_steering_is_recorded_in_the_history_of_the_group(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_group(client, group_input())
    await until_group_counts(handle, {"under way": 4})
    await steer(handle, "cancel_episode", 1)
    await end(handle, fakes)
    accepted = [
        event.workflow_execution_update_accepted_event_attributes.accepted_request.input.name
        for event in (await handle.fetch_history()).events
        if event.HasField("workflow_execution_update_accepted_event_attributes")
    ]
    assert accepted == ["cancel_episode"]
