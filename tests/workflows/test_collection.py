"""How many groups an iteration begins, waits for, leaves behind and bears to lose."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from loopwright.contracts.configs import IterationConfig, LoopConfig
from loopwright.contracts.episodes import GradeEpisodeRequest
from loopwright.contracts.iterations import (
    IterationResult,
    SelectTasksRequest,
    SetRequest,
    StopRequest,
)
from loopwright.core import priorities
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop


def config(*, num_iterations: int = 1, **fields: Any) -> LoopConfig:
    iteration = IterationConfig(**{"num_tasks": 2, "group_size": 2, **fields})
    return small_config(iteration=iteration, num_iterations=num_iterations)


async def only_row(handle: WorkflowHandle[Any, Any]) -> IterationResult:
    (row,) = (await handle.result()).results
    assert isinstance(row, IterationResult)
    return row


def hold_task(fakes: FakeActivities, task_id: str) -> asyncio.Event:
    """Let the episodes of one task stand still."""
    fakes.is_held = lambda request: request.episode.task.task_id == task_id
    return fakes.hold.setdefault("episode.take_turns", asyncio.Event())


def begun(fakes: FakeActivities, iteration: int = 1) -> list[str]:
    """List the tasks of an iteration whose episodes have begun, each once, in order."""
    part = f"/iteration/{iteration:06d}/"
    requests = fakes.requests("episode.take_turns")
    return list(
        dict.fromkeys(each.episode.task.task_id for each in requests if part in each.episode.prefix)
    )


def failing(*task_ids: str) -> Any:
    """Give no verdict for some tasks, whose groups are then lost."""

    def reward(request: GradeEpisodeRequest) -> float | None:
        if request.episode.task.task_id in task_ids:
            return None
        return float(request.episode.index % 2)

    return reward


async def test_lost_group_is_replaced_by_a_spare_task(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.num_spares, fakes.reward = 4, failing("t0", "spare0")
    row = await only_row(await start_loop(client, config()))
    assert set(begun(fakes)) == {"t0", "t1", "spare0", "spare1"}
    assert (row.num_groups, row.num_admitted, row.num_episodes, row.num_lost) == (4, 2, 8, 0)


async def test_iteration_with_too_few_groups_ends_the_loop_with_the_reason(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.num_spares, fakes.reward = 1, failing("t0", "spare0")
    handle = await start_loop(client, config())
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    message = str(failed.value.cause)
    assert "1 of 2 groups are scored, 2 needed" in message
    assert "2 x too few valid episodes" in message
    assert not fakes.counts()["trainer.train_step"]
    assert fakes.holder is None


async def test_loop_stops_when_the_platform_loses_too_many_groups_in_a_row(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.num_spares = 4
    fakes.failures["episode.grade_episode"] = [
        ApplicationError("no jail", type="EngineUnavailable", non_retryable=True) for _ in range(99)
    ]
    handle = await start_loop(
        client, config(num_tasks=1, max_replacements=0, max_infra_drops_in_a_row=2)
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert "iteration.max_infra_drops_in_a_row is 2" in str(failed.value.cause)
    assert len(begun(fakes)) == 3


async def test_no_more_groups_are_open_than_allowed_and_the_limit_changes_live(
    client: Client, fakes: FakeActivities
) -> None:
    go_on = fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_loop(client, config(num_tasks=5, max_open_groups=1))
    while not begun(fakes):
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)
    assert begun(fakes) == ["t0"]
    await handle.execute_update("set", SetRequest(changes={"iteration.max_open_groups": 3}))
    while len(begun(fakes)) < 3:
        await asyncio.sleep(0.02)
    go_on.set()
    assert (await only_row(handle)).num_groups == 5


async def test_spare_groups_are_learned_from_where_all_are_waited_for(
    client: Client, fakes: FakeActivities
) -> None:
    row = await only_row(await start_loop(client, config(spare_groups=1)))
    assert (row.num_groups, row.num_admitted, row.num_episodes) == (3, 3, 6)


async def test_dropped_stragglers_are_counted_as_cancelled(
    client: Client, fakes: FakeActivities
) -> None:
    hold_task(fakes, "t1")
    row = await only_row(await start_loop(client, config(spare_groups=1, stragglers="drop")))
    assert (row.outcome, row.num_groups, row.num_admitted) == ("trained", 3, 2)
    assert (row.num_episodes, row.num_cancelled, row.num_failed, row.num_lost) == (6, 2, 0, 0)


async def test_carried_straggler_ends_in_the_next_iteration(
    client: Client, fakes: FakeActivities
) -> None:
    go_on = hold_task(fakes, "t1")
    fakes.turns_per_episode = 3
    handle = await start_loop(
        client,
        config(num_iterations=2, spare_groups=1, stragglers="carry", max_staleness=1),
    )
    while not begun(fakes, 2):
        await asyncio.sleep(0.02)
    go_on.set()
    first, second = (await handle.result()).results
    assert (first.num_groups, first.num_carried, first.num_episodes) == (2, 1, 4)
    # Two tasks that begin there, and the one that was carried.
    assert (second.num_groups, second.num_carried, second.num_episodes) == (3, 0, 6)
    resumed = [
        each.episode.resume_from
        for each in fakes.requests("episode.take_turns")
        if each.episode.task.task_id == "t1" and each.episode.resume_from is not None
    ]
    assert [head.num_turns for head in resumed if head] == [1, 1]


@pytest.mark.parametrize(("max_staleness", "key"), [(1, priorities.LATE), (2, priorities.TRAINING)])
async def test_carried_group_is_hastened_where_the_next_update_is_the_last_to_learn_from_it(
    client: Client, fakes: FakeActivities, max_staleness: int, key: int
) -> None:
    go_on = hold_task(fakes, "t1")
    fakes.turns_per_episode = 3
    carrying = CARRYING | {"max_staleness": max_staleness}
    handle = await start_loop(client, config(num_iterations=2, **carrying))
    while not begun(fakes, 2):
        await asyncio.sleep(0.02)
    go_on.set()
    await handle.result()
    episodes = [each.episode for each in fakes.requests("episode.take_turns")]
    assert {each.priority.key for each in episodes if each.resume_from} == {key}
    assert {each.priority.key for each in episodes if not each.resume_from} == {priorities.TRAINING}


CARRYING: dict[str, Any] = {"spare_groups": 1, "stragglers": "carry", "max_staleness": 1}


async def test_group_that_is_parked_when_its_loop_ends_is_counted(
    client: Client, fakes: FakeActivities
) -> None:
    hold_task(fakes, "t1")
    fakes.turns_per_episode = 3
    result = await (await start_loop(client, config(**CARRYING))).result()
    (row,) = result.results
    assert (row.num_carried, row.num_episodes) == (1, 4)
    assert (result.num_episodes, result.num_lost) == (6, 0)


async def test_carried_group_that_never_goes_on_counts_as_cancelled(
    client: Client, fakes: FakeActivities
) -> None:
    def is_held(request: Any) -> bool:
        if isinstance(request, SelectTasksRequest):
            return fakes.counts()["control.select_tasks"] > 1
        return bool(request.episode.task.task_id == "t1")

    for name in ("episode.take_turns", "control.select_tasks"):
        fakes.hold[name] = asyncio.Event()
    fakes.is_held, fakes.turns_per_episode = is_held, 3
    handle = await start_loop(client, config(num_iterations=2, **CARRYING))
    while fakes.counts()["control.select_tasks"] < 2:
        await asyncio.sleep(0.02)
    await handle.execute_update("stop", StopRequest(now=True))
    result = await handle.result()
    row = result.results[-1]
    assert (row.index, row.outcome) == (2, "stopped")
    assert (row.num_episodes, row.num_cancelled, row.num_lost) == (2, 2, 0)
    assert (result.num_episodes, result.num_lost) == (6, 0)


async def test_silence_is_told_in_the_details(client: Client, fakes: FakeActivities) -> None:
    go_on = fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_loop(client, config(watchdog_seconds=1))
    child = client.get_workflow_handle(f"{handle.id}/iteration/000001")
    while not begun(fakes):
        await asyncio.sleep(0.02)
    while "Nothing has ended for 1 seconds" not in await details(child):
        await asyncio.sleep(0.1)
    go_on.set()
    await only_row(handle)


async def details(handle: WorkflowHandle[Any, Any]) -> str:
    metadata = await handle.query("__temporal_workflow_metadata")
    return str(metadata)


async def test_iteration_that_has_begun_needs_no_more_groups_when_the_next_is_to_have_more(
    client: Client, fakes: FakeActivities
) -> None:
    go_on = hold_task(fakes, "t1")
    handle = await start_loop(client, config())
    while fakes.counts()["episode.take_turns"] < 4:
        await asyncio.sleep(0.02)
    await handle.execute_update("set", SetRequest(changes={"iteration.num_tasks": 20}))
    go_on.set()
    assert (await only_row(handle)).outcome == "trained"


async def test_iteration_that_is_to_have_fewer_groups_than_are_carried_draws_no_task(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.turns_per_episode = 2
    carried = [f"/iteration/000001/task/program_steps.t{i}/" for i in (1, 2, 3)]
    fakes.is_held = lambda request: (
        not hasattr(request, "episode")
        or any(part in f"{request.episode.prefix}/" for part in carried)
    )
    hold = {name: asyncio.Event() for name in ("episode.take_turns", "control.write_report")}
    fakes.hold |= hold
    fields = {"spare_groups": 3, "stragglers": "carry", "max_staleness": 1}
    handle = await start_loop(client, config(num_iterations=2, num_tasks=1, **fields))
    while not fakes.counts()["episode.take_turns"]:
        await asyncio.sleep(0.02)
    await handle.execute_update("pause")
    while not fakes.counts()["control.write_report"]:
        await asyncio.sleep(0.02)
    await handle.execute_update("set", SetRequest(changes={"iteration.spare_groups": 0}))
    carried.clear()
    for each in hold.values():
        each.set()
    await handle.execute_update("resume")
    result = await handle.result()
    assert [row.num_carried for row in result.results] == [3, 0]
    assert fakes.requests("control.select_tasks")[-1].num_tasks == 0
