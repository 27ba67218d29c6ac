"""Groups whose episodes fail: what is replaced, what is not, and what becomes of the group."""

import asyncio
from typing import Any

from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from loopwright.contracts.episodes import GradeEpisodeRequest
from loopwright.contracts.groups import GroupResult, ScoreGroupRequest
from loopwright.core import priorities
from tests.fakes import FakeActivities
from tests.workflows.inputs import group_input, start_group


def final(name: str) -> ApplicationError:
    """Make a failure that no retry can help."""
    return ApplicationError("it broke", type=name, non_retryable=True)


async def run_group(client: Client, **changes: Any) -> GroupResult:
    return await (await start_group(client, group_input(**changes))).result()


def scored(fakes: FakeActivities) -> ScoreGroupRequest:
    (request,) = fakes.requests("control.score_group")
    assert isinstance(request, ScoreGroupRequest)
    return request


async def test_failed_episode_is_replaced_under_the_next_free_index(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [final("EngineUnavailable")] * 2
    result = await run_group(client)
    requests = fakes.requests("episode.take_turns")
    assert sorted(r.episode.index for r in requests) == [0, 1, 2, 3, 4, 5]
    assert len({(r.episode.prefix, r.episode.seed) for r in requests}) == 6
    assert [episode.index for episode in scored(fakes).episodes] == [0, 1, 2, 3, 4, 5]
    assert (result.num_episodes, result.num_valid, result.num_replaced) == (6, 4, 2)
    assert result.is_admitted


async def test_replacement_goes_before_what_has_others_to_wait_for(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [final("EngineUnavailable")]
    await run_group(client)
    episodes = [each.episode for each in fakes.requests("episode.take_turns")]
    keys = {each.index: each.priority.key for each in episodes}
    assert keys == dict.fromkeys(range(4), priorities.TRAINING) | {4: priorities.LATE}


async def test_replacement_that_fails_is_replaced_in_turn(
    client: Client, fakes: FakeActivities
) -> None:
    def reward(request: GradeEpisodeRequest) -> float:
        if request.episode.index in (0, 4, 5):
            raise final("EngineUnavailable")
        return float(request.episode.index % 2)

    fakes.reward = reward
    result = await run_group(client)
    assert (result.num_episodes, result.num_valid, result.num_replaced) == (7, 4, 3)


async def test_group_beyond_its_budget_goes_on_smaller(
    client: Client, fakes: FakeActivities
) -> None:
    def reward(request: GradeEpisodeRequest) -> float:
        if request.episode.index in (0, 1):
            raise final("EngineUnavailable")
        return float(request.episode.index % 2)

    fakes.reward = reward
    result = await run_group(client, max_replacements=1)
    assert (result.num_episodes, result.num_valid, result.num_replaced) == (5, 3, 1)
    assert result.is_admitted


async def test_group_that_the_platform_left_too_small_is_dropped_by_it(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [final("EngineUnavailable")] * 5
    result = await run_group(client)
    assert (result.num_episodes, result.num_valid) == (7, 2)
    assert (result.is_admitted, result.dropped_by) == (False, "infra")
    assert "5 x EngineUnavailable" in result.reason


async def test_task_that_fails_its_episodes_is_given_one_more_chance(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.grade_episode"] = [final("EnvironmentFailure")] * 99
    result = await run_group(client)
    assert (result.num_episodes, result.num_replaced) == (5, 1)
    assert (result.is_admitted, result.dropped_by) == (False, "data")


async def test_task_and_platform_have_budgets_of_their_own(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [final("StoreError")] * 3
    fakes.failures["episode.grade_episode"] = [final("TaskError")]
    result = await run_group(client)
    assert (result.num_episodes, result.num_valid, result.num_replaced) == (8, 4, 4)


async def test_what_a_user_configured_wrongly_is_not_tried_again(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [final("UserError")] * 4
    result = await run_group(client)
    assert (result.num_episodes, result.num_valid, result.dropped_by) == (4, 0, "data")


async def test_cancelled_episode_is_not_replaced(client: Client, fakes: FakeActivities) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_group(client, group_input())
    while fakes.counts()["episode.take_turns"] < 4:
        await asyncio.sleep(0.02)
    await client.get_workflow_handle(f"{handle.id}/episode/2").cancel()
    fakes.hold["episode.take_turns"].set()
    result = await handle.result()
    assert (result.num_episodes, result.num_cancelled, result.num_replaced) == (4, 1, 0)


async def test_terminated_episode_is_replaced(client: Client, fakes: FakeActivities) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_group(client, group_input())
    while fakes.counts()["episode.take_turns"] < 4:
        await asyncio.sleep(0.02)
    await client.get_workflow_handle(f"{handle.id}/episode/2").terminate("by hand")
    fakes.hold["episode.take_turns"].set()
    result = await handle.result()
    assert (result.num_episodes, result.num_valid, result.num_replaced) == (5, 4, 1)


async def test_cancelled_group_tells_of_the_episodes_that_it_replaced(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [final("EngineUnavailable")]
    fakes.hold["episode.grade_episode"] = asyncio.Event()
    handle = await start_group(client, group_input())
    while fakes.counts()["episode.grade_episode"] < 4:
        await asyncio.sleep(0.02)
    await handle.cancel()
    result = await handle.result()
    fakes.hold["episode.grade_episode"].set()
    assert (result.num_episodes, result.num_cancelled, result.num_replaced) == (5, 4, 1)
    assert (result.is_admitted, result.dropped_by) == (False, "")
