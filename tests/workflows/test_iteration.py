"""Episodes and groups inside a loop: what fails, what is repeated, what is counted."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from loopwright.contracts.configs import EvaluationConfig
from loopwright.contracts.turns import TurnHead
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop
from tests.workflows.inputs import episode_input, run_episode, start_episode


async def test_episode_takes_one_activity_a_chunk_and_goes_on_from_its_head(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.turns_per_episode = 3
    result = await run_episode(client, episode_input())
    heads = [r.head.num_turns for r in fakes.requests("episode.take_turns")]
    assert heads == [0, 1, 2]
    assert (result.num_turns, result.num_completion_tokens) == (3, 30)


async def test_episode_resumes_from_the_turn_it_is_given(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.turns_per_episode = 3
    head = TurnHead(num_turns=2, digest="d2")
    await run_episode(client, episode_input(resume_from=head))
    assert [r.head for r in fakes.requests("episode.take_turns")] == [head]


async def test_infrastructure_failure_is_retried_and_leaves_no_mark(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [
        ApplicationError("engine away", type="EngineUnavailable"),
        ApplicationError("engine away", type="EngineUnavailable"),
    ]
    result = await run_episode(client, episode_input())
    assert result.status == "graded"
    assert fakes.counts()["episode.take_turns"] == 3


async def test_failed_episode_has_an_owner_and_no_reward(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.grade_episode"] = [
        ApplicationError("no cases", type="TaskError", non_retryable=True)
    ]
    result = await run_episode(client, episode_input())
    assert (result.status, result.reward) == ("failed", None)
    assert result.failure is not None
    assert (result.failure.owner, result.failure.type) == ("task", "TaskError")


async def test_payload_that_is_too_big_fails_at_once_by_name(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [ApplicationError("big", type="PayloadsTooLarge")]
    result = await run_episode(client, episode_input())
    assert result.failure is not None
    assert result.failure.type == "PayloadsTooLarge"
    assert fakes.counts()["episode.take_turns"] == 1


async def test_failed_episodes_are_counted_and_keep_their_siblings(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.grade_episode"] = [
        ApplicationError("bad", type="EnvironmentFailure", non_retryable=True)
    ]
    result = await (await start_loop(client, small_config(num_iterations=1))).result()
    row = result.results[0]
    assert (row.num_episodes, row.num_failed, row.num_lost) == (13, 1, 0)
    assert row.outcome == "trained"


async def test_group_with_too_few_valid_episodes_is_not_admitted(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.reward = lambda request: (
        None
        if request.episode.task.task_id == "t0" and request.episode.index < 2
        else float(request.episode.index % 2)
    )
    fakes.num_spares = 1
    (row,) = (await (await start_loop(client, small_config(num_iterations=1))).result()).results
    assert (row.num_groups, row.num_admitted, row.num_lost) == (4, 3, 0)


async def test_terminated_episode_is_recorded_as_failed(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_loop(client, small_config(num_iterations=1))
    while fakes.counts()["episode.take_turns"] < 12:
        await asyncio.sleep(0.02)
    victim = f"{handle.id}/iteration/000001/task/program_steps.t1/episode/2"
    await client.get_workflow_handle(victim).terminate("by hand")
    fakes.hold["episode.take_turns"].set()
    row = (await handle.result()).results[0]
    assert (row.num_failed, row.num_lost) == (1, 0)


async def test_evaluations_go_before_training_in_the_queue(
    client: Client, fakes: FakeActivities
) -> None:
    config = small_config(
        num_iterations=1, evaluation=EvaluationConfig(num_tasks=2, samples=2, at_end=False)
    )
    await (await start_loop(client, config)).result()
    keys = {r.episode.kind: r.episode.priority.key for r in fakes.requests("episode.take_turns")}
    assert keys["evaluation"] < keys["training"]


async def test_workflow_ids_mirror_artifact_keys(client: Client, fakes: FakeActivities) -> None:
    handle = await start_loop(client, small_config(num_iterations=1))
    await handle.result()
    request = fakes.requests("episode.take_turns")[0]
    uid = (await handle.describe()).run_id[-12:]
    loop_id = handle.id.removeprefix("loop/")
    assert request.episode.prefix.startswith(f"loop/{loop_id}/{uid}/iteration/000001/task/")


@pytest.mark.parametrize("profile", ["embedded", "cluster"])
async def test_heartbeat_timeout_follows_the_profile(
    client: Client, fakes: FakeActivities, profile: str
) -> None:
    expected = {"embedded": timedelta(seconds=20), "cluster": timedelta(seconds=120)}
    handle = await start_episode(client, episode_input(profile=profile))
    await handle.result()
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in (await handle.fetch_history()).events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert scheduled[0].heartbeat_timeout.ToTimedelta() == expected[profile]
