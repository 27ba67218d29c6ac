"""Loops stopped in the middle of their work: every iteration and episode has its outcome."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from loopwright.contracts.configs import EvaluationConfig
from loopwright.contracts.iterations import IterationResult, LoopResult, StopRequest
from tests.fakes import FakeActivities, Turnstile
from tests.workflows.conftest import small_config, start_loop

EPISODES = 12
"""Of one iteration of the small configuration."""
ENDED_EPISODES = "WorkflowType = 'Episode' AND ExecutionStatus = 'Completed'"


async def begun(fakes: FakeActivities, activity: str, count: int = 1) -> None:
    while fakes.counts()[activity] < count:
        await asyncio.sleep(0.02)


async def stopped_in(
    client: Client, fakes: FakeActivities, activity: str, **changes: Any
) -> LoopResult:
    """Stop a loop now while it waits for an activity that does not end."""
    fakes.hold[activity] = asyncio.Event()
    handle = await start_loop(client, small_config(**changes))
    await begun(fakes, activity)
    await handle.execute_update("stop", StopRequest(now=True))
    result: LoopResult = await handle.result()
    fakes.hold[activity].set()
    return result


def accounts(row: IterationResult) -> tuple[int, int, int, int]:
    return row.num_episodes, row.num_failed, row.num_cancelled, row.num_lost


async def test_iteration_stopped_in_its_turns_counts_its_episodes_as_cancelled(
    client: Client, fakes: FakeActivities
) -> None:
    result = await stopped_in(client, fakes, "episode.take_turns")
    (row,) = result.results
    assert (row.index, row.outcome, row.policy_version) == (1, "stopped", 0)
    assert accounts(row) == (EPISODES, 0, EPISODES, 0)
    assert (result.num_iterations, result.num_episodes, result.num_lost) == (1, EPISODES, 0)


async def test_episodes_that_had_ended_before_a_stop_keep_their_outcome(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.grade_episode"] = Turnstile(5)
    fakes.reward = lambda request: 1.0
    handle = await start_loop(client, small_config())
    while (await client.count_workflows(ENDED_EPISODES)).count < 5:
        await asyncio.sleep(0.02)
    await handle.execute_update("stop", StopRequest(now=True))
    (row,) = (await handle.result()).results
    fakes.hold["episode.grade_episode"].set()
    assert accounts(row) == (EPISODES, 0, EPISODES - 5, 0)
    assert row.first_pass_rate == 1.0


@pytest.mark.parametrize("activity", ["control.score_group", "trainer.train_step"])
async def test_iteration_stopped_after_its_episodes_keeps_all_their_outcomes(
    client: Client, fakes: FakeActivities, activity: str
) -> None:
    (row,) = (await stopped_in(client, fakes, activity)).results
    assert row.outcome == "stopped"
    assert accounts(row)[0] == EPISODES
    assert row.num_lost == 0


async def test_iteration_stopped_in_its_training_leaves_the_version_it_began_with(
    client: Client, fakes: FakeActivities
) -> None:
    result = await stopped_in(client, fakes, "trainer.train_step")
    (row,) = result.results
    assert accounts(row) == (EPISODES, 0, 0, 0)
    assert row.first_pass_rate == 0.5
    assert row.policy_version == 0
    assert result.checkpoint is not None
    assert result.checkpoint.policy.version == 0


async def test_iteration_stopped_while_it_reports_was_trained(
    client: Client, fakes: FakeActivities
) -> None:
    (row,) = (await stopped_in(client, fakes, "control.write_report")).results
    assert (row.outcome, row.policy_version) == ("trained", 1)


async def test_iteration_stopped_before_it_has_tasks_has_no_episodes(
    client: Client, fakes: FakeActivities
) -> None:
    (row,) = (await stopped_in(client, fakes, "control.select_tasks")).results
    assert (row.outcome, row.num_episodes, row.num_lost) == ("stopped", 0, 0)


async def test_stopped_evaluation_is_no_evaluation_but_its_episodes_count(
    client: Client, fakes: FakeActivities
) -> None:
    evaluation = EvaluationConfig(num_tasks=2, samples=2, at_end=False)
    result = await stopped_in(client, fakes, "episode.take_turns", evaluation=evaluation)
    assert result.base_evaluation is None
    assert (result.num_episodes, result.num_lost, result.results) == (4, 0, ())


async def test_second_stop_does_no_harm(client: Client, fakes: FakeActivities) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_loop(client, small_config())
    await begun(fakes, "episode.take_turns")
    for now in (False, True, True):
        await handle.execute_update("stop", StopRequest(now=now))
    (row,) = (await handle.result()).results
    fakes.hold["episode.take_turns"].set()
    assert accounts(row) == (EPISODES, 0, EPISODES, 0)


async def test_iteration_cancelled_by_another_hand_ends_the_loop_with_a_reason(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_loop(client, small_config())
    await begun(fakes, "episode.take_turns")
    await client.get_workflow_handle(f"{handle.id}/iteration/000001").cancel()
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    fakes.hold["episode.take_turns"].set()
    assert "iteration 1 was cancelled by another hand" in str(caught.value.cause)
    assert fakes.holder is None


async def test_group_cancelled_by_another_hand_counts_its_episodes_as_cancelled(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.num_spares = 1
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_loop(client, small_config(num_iterations=1))
    await begun(fakes, "episode.take_turns", EPISODES)
    group = f"{handle.id}/iteration/000001/task/program_steps.t1"
    await client.get_workflow_handle(group).cancel()
    await client.get_workflow_handle(group).result()
    fakes.hold["episode.take_turns"].set()
    (row,) = (await handle.result()).results
    assert (row.outcome, accounts(row)) == ("trained", (EPISODES + 4, 0, 4, 0))
