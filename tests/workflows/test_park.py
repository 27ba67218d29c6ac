"""Episodes and groups that are parked at a turn, and go on from there."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from loopwright.contracts.episodes import EpisodeResult, Priority, TakeTurnsRequest
from loopwright.contracts.groups import GroupResult
from loopwright.contracts.progress import GroupProgress
from loopwright.contracts.turns import TurnHead
from tests.core.episodes import failed
from tests.fakes import FakeActivities
from tests.workflows.conftest import WORKFLOWS
from tests.workflows.inputs import episode_input, group_input, start_episode, start_group

D2 = TurnHead(num_turns=2, digest="d2")


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.02)


async def until_group_counts(handle: WorkflowHandle[Any, Any], counts: dict[str, int]) -> None:
    """Wait until a group knows this much of its episodes, which are ahead of it."""
    progress = None
    while progress is None or +Counter(progress.episodes) != counts:
        progress = await handle.query("progress", result_type=GroupProgress)


def in_second_turn(request: TakeTurnsRequest) -> bool:
    return request.head.num_turns == 1


def heads_of(fakes: FakeActivities, index: int) -> list[int]:
    requests = fakes.requests("episode.take_turns")
    return [r.head.num_turns for r in requests if r.episode.index == index]


async def event_types(handle: WorkflowHandle[Any, Any]) -> list[str]:
    return [EventType.Name(event.event_type) for event in (await handle.fetch_history()).events]


async def test_parked_episode_ends_the_turn_under_way_and_tells_its_head(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.turns_per_episode = 3
    fakes.hold["episode.take_turns"] = asyncio.Event()
    fakes.is_held = in_second_turn
    handle = await start_episode(client, episode_input())
    await until(lambda: fakes.counts()["episode.take_turns"] == 2)
    await handle.signal("park")
    result = await handle.result()
    assert (result.status, result.stop_reason, result.head) == ("parked", "parked", D2)
    assert (result.num_turns, result.num_completion_tokens, result.reward) == (2, 20, None)


async def test_episode_that_is_being_graded_when_parked_ends_as_it_would(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.grade_episode"] = asyncio.Event()
    handle = await start_episode(client, episode_input())
    await until(lambda: fakes.counts()["episode.grade_episode"] == 1)
    await handle.signal("park")
    fakes.hold["episode.grade_episode"].set()
    assert (await handle.result()).status == "graded"


async def test_episode_parked_before_its_first_turn_takes_none(
    client: Client, fakes: FakeActivities
) -> None:
    result = await (await start_episode(client, episode_input(), start_signal="park")).result()
    assert result.head == TurnHead(num_turns=0, digest="")
    assert fakes.counts()["episode.take_turns"] == 0


async def test_episode_that_no_worker_serves_parks_where_it_stood(
    temporal: WorkflowEnvironment,
) -> None:
    lonely = f"lonely-{uuid.uuid4()}"
    async with Worker(temporal.client, task_queue=lonely, workflows=WORKFLOWS):
        handle = await start_episode(temporal.client, episode_input(resume_from=D2), queue=lonely)
        while "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED" not in await event_types(handle):
            await asyncio.sleep(0.02)
        await handle.signal("park")
        result = await handle.result()
    assert (result.status, result.head) == ("parked", D2)


async def test_cancelled_episode_asks_its_activity_to_end_and_does_not_wait_for_it(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_episode(client, episode_input())
    await until(lambda: fakes.counts()["episode.take_turns"] == 1)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    *_, asked, ended = await event_types(handle)
    assert asked == "EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED"
    assert ended == "EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED"


async def half_done(client: Client, fakes: FakeActivities) -> WorkflowHandle[Any, GroupResult]:
    """Start a group of which two episodes end, and two are in their second turn."""
    fakes.turns_per_episode = 3
    fakes.hold["episode.take_turns"] = asyncio.Event()
    fakes.is_held = lambda request: in_second_turn(request) and request.episode.index >= 2
    handle = await start_group(client, group_input())
    await until(lambda: heads_of(fakes, 2) == heads_of(fakes, 3) == [0, 1])
    await until_group_counts(handle, {"under way": 2, "graded": 2})
    return handle


async def park(client: Client, handle: WorkflowHandle[Any, GroupResult]) -> GroupResult:
    await handle.signal("park")
    return await handle.result()


async def start_again(
    client: Client, parked: GroupResult, **options: Any
) -> WorkflowHandle[Any, GroupResult]:
    """Start a parked group as the next iteration does."""
    assert parked.parked is not None
    episode = episode_input(prefix="elsewhere", seed=99, priority=Priority(key=1))
    again = group_input(episode=episode, iteration=2, parked=parked.parked.artifact)
    return await start_group(client, again, group_id=parked.parked.group_id, **options)


async def go_on(client: Client, fakes: FakeActivities, parked: GroupResult) -> GroupResult:
    fakes.hold.clear()
    return await (await start_again(client, parked)).result()


def episodes_of(fakes: FakeActivities, parked: GroupResult) -> tuple[EpisodeResult, ...]:
    assert parked.parked is not None
    return fakes.parked[parked.parked.artifact.key].episodes


async def test_parked_group_keeps_who_has_ended_and_the_turns_of_the_others(
    client: Client, fakes: FakeActivities
) -> None:
    handle = await half_done(client, fakes)
    result = await park(client, handle)
    assert (result.is_admitted, result.dropped_by, result.manifest) == (False, "", None)
    assert result.parked is not None
    assert (result.parked.group_id, result.parked.oldest_version) == (handle.id, 3)
    episodes = episodes_of(fakes, result)
    assert [(e.index, e.status) for e in episodes] == [
        (0, "graded"),
        (1, "graded"),
        (2, "parked"),
        (3, "parked"),
    ]
    assert [e.head for e in episodes] == [None, None, D2, D2]


async def test_parked_group_that_goes_on_comes_to_what_an_undisturbed_one_does(
    client: Client, fakes: FakeActivities
) -> None:
    result = await go_on(client, fakes, await park(client, await half_done(client, fakes)))
    undisturbed = await (await start_group(client, group_input())).result()
    assert result == undisturbed
    disturbed, other = fakes.requests("control.score_group")
    assert disturbed == other


async def test_group_that_goes_on_plays_only_what_is_left_with_the_priority_of_now(
    client: Client, fakes: FakeActivities
) -> None:
    parked = await park(client, await half_done(client, fakes))
    num_before = fakes.counts()["episode.take_turns"]
    await go_on(client, fakes, parked)
    requests = fakes.requests("episode.take_turns")[num_before:]
    assert sorted((r.episode.index, r.head) for r in requests) == [(2, D2), (3, D2)]
    assert [r.episode.resume_from for r in requests] == [D2, D2]
    assert {r.episode.priority.key for r in requests} == {1}


async def test_group_that_came_no_further_is_parked_as_it_was(
    client: Client, fakes: FakeActivities
) -> None:
    first = await park(client, await half_done(client, fakes))
    fakes.ends_softly, fakes.is_held = False, lambda request: True
    num_before = fakes.counts()["episode.take_turns"]
    handle = await start_again(client, first)
    await until(lambda: fakes.counts()["episode.take_turns"] == num_before + 2)
    second = await park(client, handle)
    assert episodes_of(fakes, second) == episodes_of(fakes, first)
    assert (await go_on(client, fakes, second)).is_admitted


async def test_group_parked_before_it_goes_on_starts_no_episode(
    client: Client, fakes: FakeActivities
) -> None:
    first = await park(client, await half_done(client, fakes))
    num_before = fakes.counts()["episode.take_turns"]
    second = await (await start_again(client, first, start_signal="park")).result()
    assert fakes.counts()["episode.take_turns"] == num_before
    assert episodes_of(fakes, second) == episodes_of(fakes, first)


async def test_group_parked_before_it_began_anything_begins_it_later(
    client: Client, fakes: FakeActivities
) -> None:
    parked = await (await start_group(client, group_input(), start_signal="park")).result()
    assert fakes.counts()["episode.take_turns"] == 0
    assert parked.num_episodes == 0
    result = await go_on(client, fakes, parked)
    assert (result.num_episodes, result.is_admitted) == (4, True)


async def test_whole_group_is_scored_though_it_is_parked(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.grade_episode"] = asyncio.Event()
    handle = await start_group(client, group_input())
    await until(lambda: fakes.counts()["episode.grade_episode"] == 4)
    await handle.signal("park")
    fakes.hold["episode.grade_episode"].set()
    result = await handle.result()
    assert (result.parked, result.is_admitted) == (None, True)


async def test_episode_that_failed_while_its_group_was_parked_is_replaced_later(
    client: Client, fakes: FakeActivities
) -> None:
    parked = await park(client, await half_done(client, fakes))
    assert parked.parked is not None
    key = parked.parked.artifact.key
    found = fakes.parked[key]
    lost = failed().model_copy(update={"index": 3})
    fakes.parked[key] = found.model_copy(update={"episodes": (*found.episodes[:3], lost)})
    result = await go_on(client, fakes, parked)
    assert heads_of(fakes, 4) == [0, 1, 2]
    assert (result.num_episodes, result.num_valid, result.num_replaced) == (5, 4, 1)


async def test_cancelled_group_is_not_parked(client: Client, fakes: FakeActivities) -> None:
    handle = await half_done(client, fakes)
    await handle.cancel()
    result = await handle.result()
    assert (result.parked, result.num_cancelled, result.num_valid) == (None, 2, 2)


async def test_episode_parked_by_itself_goes_on_at_once(
    client: Client, fakes: FakeActivities
) -> None:
    handle = await half_done(client, fakes)
    await client.get_workflow_handle(f"{handle.id}/episode/2").signal("park")
    await until(lambda: heads_of(fakes, 2) == [0, 1, 2])
    fakes.hold["episode.take_turns"].set()
    result = await handle.result()
    assert (result.num_valid, result.num_replaced) == (4, 0)
