"""The loop, with fake activities on the real server."""

import asyncio
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError

from loopwright.contracts import ids
from loopwright.contracts.configs import EvaluationConfig, IterationConfig
from loopwright.contracts.evaluations import EvaluateRequest, EvaluationResult
from loopwright.contracts.failures import ArtifactDamaged, StoreError
from loopwright.contracts.iterations import LoopProgress, RunIterationsRequest, StopRequest
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop


async def progress(handle: WorkflowHandle[Any, Any]) -> LoopProgress:
    state: LoopProgress = await handle.query("progress", result_type=LoopProgress)
    return state


async def until_phase(handle: WorkflowHandle[Any, Any], *phases: str) -> LoopProgress:
    while (state := await progress(handle)).phase not in phases:
        await asyncio.sleep(0.02)
    return state


async def test_loop_runs_the_iterations_it_was_asked_for(
    client: Client, fakes: FakeActivities
) -> None:
    result = await (await start_loop(client, small_config())).result()
    assert (result.outcome, result.num_iterations) == ("completed", 2)
    assert result.checkpoint.policy.version == 2
    assert result.num_episodes == 24
    assert result.num_lost == 0
    assert fakes.counts()["episode.take_turns"] == 24


async def test_each_iteration_acts_with_the_version_the_last_one_made(
    client: Client, fakes: FakeActivities
) -> None:
    await (await start_loop(client, small_config())).result()
    versions = [r.episode.policy.version for r in fakes.requests("episode.take_turns")]
    assert versions == [0] * 12 + [1] * 12
    published = [r.checkpoint.policy.version for r in fakes.requests("engine.load_policy")]
    assert published == [0, 1, 2]


async def test_base_and_final_policy_are_evaluated_on_the_same_tasks(
    client: Client, fakes: FakeActivities
) -> None:
    config = small_config(evaluation=EvaluationConfig(num_tasks=2, samples=2))
    result = await (await start_loop(client, config)).result()
    assert result.base_evaluation.policy_version == 0
    assert result.final_evaluation.policy_version == 2
    assert result.base_evaluation.first_pass_rate.mean == 0.5
    heldout = [r for r in fakes.requests("control.select_tasks") if r.split == "heldout"]
    assert heldout[0] == heldout[1]


async def test_loop_without_signal_is_skipped_and_goes_on(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.reward = lambda request: 1.0
    result = await (await start_loop(client, small_config())).result()
    assert [row.outcome for row in result.results] == ["skipped_no_signal"] * 2
    assert result.checkpoint.policy.version == 0
    assert fakes.counts()["trainer.train_step"] == 0


async def test_loop_ends_early_when_two_iterations_reach_the_target(client: Client) -> None:
    config = small_config(num_iterations=9, target_pass_rate=0.5)
    result = await (await start_loop(client, config)).result()
    assert result.num_iterations == 2


async def test_second_loop_waits_for_the_engine_and_says_for_whom(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.holder = "loop/other"
    handle = await start_loop(client, small_config())
    state = await until_phase(handle, "waiting_for_engine")
    while "loop/other" not in state.detail:
        state = await progress(handle)
    fakes.holder = None
    assert (await handle.result()).outcome == "completed"
    assert fakes.holder is None


async def test_stop_ends_the_loop_after_the_running_iteration(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, small_config(num_iterations=5))
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await handle.execute_update("stop", StopRequest())
    fakes.hold["trainer.train_step"].set()
    result = await handle.result()
    assert (result.outcome, result.num_iterations) == ("stopped", 1)


async def test_stop_now_cancels_the_running_iteration_and_frees_the_engine(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_loop(client, small_config(num_iterations=5))
    while not fakes.counts()["episode.take_turns"]:
        await asyncio.sleep(0.02)
    await handle.execute_update("stop", StopRequest(now=True))
    fakes.hold["episode.take_turns"].set()
    result = await handle.result()
    assert (result.outcome, result.num_iterations) == ("stopped", 1)
    assert fakes.holder is None


async def test_paused_loop_waits_until_it_is_resumed(client: Client, fakes: FakeActivities) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, small_config())
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await handle.execute_update("pause")
    fakes.hold["trainer.train_step"].set()
    assert len((await until_phase(handle, "paused")).results) == 1
    assert fakes.holder is None
    await handle.execute_update("resume")
    assert (await handle.result()).num_iterations == 2


async def test_pause_of_an_idle_loop_shows_at_once(client: Client) -> None:
    handle = await start_loop(client, small_config(num_iterations=None))
    await until_phase(handle, "idle")
    await handle.execute_update("pause")
    await until_phase(handle, "paused")
    await handle.execute_update("resume")
    await until_phase(handle, "idle")


async def test_loop_that_was_paused_while_it_waited_for_the_engine_runs_nothing(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.holder = "loop/other"
    handle = await start_loop(client, small_config())
    await until_phase(handle, "waiting_for_engine")
    await handle.execute_update("pause")
    fakes.holder = None
    assert (await until_phase(handle, "paused")).results == ()
    assert fakes.counts()["episode.take_turns"] == 0


async def test_status_tells_a_pause_that_is_asked_from_one_that_is_reached(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, small_config())
    await until_phase(handle, "iterating")
    assert (await progress(handle)).status == "running"
    await handle.execute_update("pause")
    assert (await progress(handle)).status == "pausing"
    fakes.hold["trainer.train_step"].set()
    assert (await until_phase(handle, "paused")).status == "paused"
    await handle.execute_update("resume")
    assert (await progress(handle)).status == "running"
    await handle.result()
    assert (await progress(handle)).status == "completed"


async def test_open_loop_ends_when_two_iterations_reach_the_target(client: Client) -> None:
    config = small_config(num_iterations=None, target_pass_rate=0.5)
    handle = await start_loop(client, config)
    await handle.execute_update("run_iterations", RunIterationsRequest(num_iterations=9))
    result = await handle.result()
    assert (result.outcome, result.num_iterations) == ("completed", 2)


async def test_evaluations_between_iterations_are_kept_with_their_iteration(client: Client) -> None:
    evaluation = EvaluationConfig(num_tasks=2, samples=2, at_start=False, at_end=False, every=2)
    handle = await start_loop(client, small_config(num_iterations=5, evaluation=evaluation))
    result = await handle.result()
    found = [(each.iteration, each.policy_version) for each in result.evaluations]
    assert found == [(2, 2), (4, 4)]
    assert (await progress(handle)).evaluations == result.evaluations
    assert result.num_episodes == 5 * 12 + 2 * 4


@pytest.mark.parametrize(
    ("num_iterations", "evaluated"),
    [(4, [0, 2, 4]), (3, [0, 2, 3]), (0, [0])],
)
async def test_no_policy_is_evaluated_twice(
    client: Client,
    fakes: FakeActivities,
    num_iterations: int,
    evaluated: list[int],
) -> None:
    evaluation = EvaluationConfig(num_tasks=2, samples=2, every=2)
    config = small_config(num_iterations=num_iterations, evaluation=evaluation)
    result = await (await start_loop(client, config)).result()
    acted = [
        request.episode.policy.version
        for request in fakes.requests("episode.take_turns")
        if "/evaluation/" in request.episode.prefix
    ]
    assert sorted(acted) == sorted(evaluated * 4)
    assert result.final_evaluation.policy_version == num_iterations
    assert result.final_evaluation.report is not None
    assert result.num_episodes == num_iterations * 12 + len(evaluated) * 4


@pytest.mark.usefixtures("short_runs")
async def test_loop_carries_its_newest_evaluations_only(client: Client) -> None:
    count = 4
    evaluation = EvaluationConfig(num_tasks=2, samples=1, at_start=False, at_end=False, every=1)
    iteration = IterationConfig(num_tasks=1, group_size=2)
    config = small_config(num_iterations=count, evaluation=evaluation, iteration=iteration)
    result = await (await start_loop(client, config)).result()
    assert [each.iteration for each in result.evaluations] == list(range(3, count + 1))


async def test_open_loop_idles_until_it_is_asked_for_iterations(client: Client) -> None:
    handle = await start_loop(client, small_config(num_iterations=None))
    await until_phase(handle, "idle")
    total = await handle.execute_update("run_iterations", RunIterationsRequest(num_iterations=1))
    assert total == 1
    while not (await progress(handle)).results:
        await asyncio.sleep(0.02)
    await until_phase(handle, "idle")
    await handle.execute_update("stop", StopRequest())
    assert (await handle.result()).num_iterations == 1


async def test_failed_training_ends_the_loop_with_its_reason_and_frees_the_engine(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["trainer.train_step"] = [
        ApplicationError("loss is nan", type="TrainingDiverged", non_retryable=True)
    ]
    handle = await start_loop(client, small_config())
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "TrainingDiverged"
    assert "iteration 1 failed: " in str(caught.value.cause)
    assert fakes.holder is None


async def test_damaged_artifact_ends_the_loop_by_its_name_after_three_attempts(
    client: Client, fakes: FakeActivities
) -> None:
    damage = [ArtifactDamaged("artifact p/trajectory-9c is damaged; restore it") for _ in range(9)]
    fakes.failures["trainer.build_batch"] = [*damage]
    handle = await start_loop(client, small_config())
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert "artifact p/trajectory-9c is damaged; restore it" in str(caught.value.cause)
    assert fakes.counts()["trainer.build_batch"] == 3


async def test_store_that_is_away_is_waited_for(client: Client, fakes: FakeActivities) -> None:
    fakes.failures["trainer.build_batch"] = [StoreError("503") for _ in range(9)]
    result = await (await start_loop(client, small_config(num_iterations=1))).result()
    assert (result.outcome, result.num_iterations) == ("completed", 1)


async def test_cancelled_loop_frees_the_engine(client: Client, fakes: FakeActivities) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await start_loop(client, small_config())
    while not fakes.counts()["episode.take_turns"]:
        await asyncio.sleep(0.02)
    await handle.cancel()
    fakes.hold["episode.take_turns"].set()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert fakes.holder is None


async def test_update_of_an_ending_loop_is_refused(client: Client, fakes: FakeActivities) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, small_config())
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await handle.execute_update("stop", StopRequest())
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update("run_iterations", RunIterationsRequest(num_iterations=1))
    fakes.hold["trainer.train_step"].set()
    await handle.result()


async def test_iterations_asked_for_during_the_last_evaluation_are_refused(
    client: Client, fakes: FakeActivities
) -> None:
    evaluation = EvaluationConfig(num_tasks=2, samples=2, at_start=False, at_end=True)
    of_iteration = fakes.hold["control.write_report"] = asyncio.Event()
    handle = await start_loop(client, small_config(num_iterations=1, evaluation=evaluation))
    while fakes.counts()["control.write_report"] < 1:
        await asyncio.sleep(0.02)
    of_evaluation = fakes.hold["control.write_report"] = asyncio.Event()
    of_iteration.set()
    while fakes.counts()["control.write_report"] < 2:
        await asyncio.sleep(0.02)
    assert (await progress(handle)).phase == "evaluating"
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update("run_iterations", RunIterationsRequest(num_iterations=1))
    of_evaluation.set()
    assert (await handle.result()).num_iterations == 1


@pytest.mark.parametrize(
    ("activity", "num_iterations"),
    [("trainer.import_policy", 0), ("engine.load_policy", 0), ("episode.take_turns", 1)],
)
async def test_loop_is_stopped_now_whatever_it_waits_for(
    client: Client, fakes: FakeActivities, activity: str, num_iterations: int
) -> None:
    fakes.hold[activity] = asyncio.Event()
    handle = await start_loop(client, small_config())
    while not fakes.counts()[activity]:
        await asyncio.sleep(0.02)
    await handle.execute_update("stop", StopRequest(now=True))
    result = await handle.result()
    fakes.hold[activity].set()
    assert (result.outcome, result.num_iterations) == ("stopped", num_iterations)
    assert fakes.holder is None


async def test_failed_import_ends_the_loop_with_its_reason(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["trainer.import_policy"] = [
        ApplicationError("no weights", type="UserError", non_retryable=True)
    ]
    handle = await start_loop(client, small_config())
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert "import of pico failed: UserError: no weights" in str(caught.value.cause)


async def test_evaluation_that_is_asked_for_is_made_once_under_its_name(
    client: Client, fakes: FakeActivities
) -> None:
    handle = await start_loop(client, small_config(num_iterations=None))
    await until_phase(handle, "idle")
    for _ in range(2):
        asked = EvaluateRequest(name="weekly-1", num_tasks=3, samples=5)
        assert await handle.execute_update("evaluate", asked) == "weekly-1"
    evaluation: WorkflowHandle[Any, EvaluationResult] = client.get_workflow_handle(
        ids.evaluation_path(handle.id, "weekly-1"), result_type=EvaluationResult
    )
    while not fakes.requests("control.write_report"):
        await asyncio.sleep(0.02)
    found = await evaluation.result()
    assert (found.num_tasks, found.samples, found.policy_version) == (3, 5, 0)
    await until_phase(handle, "idle")
    await handle.execute_update("stop", StopRequest())
    result = await handle.result()
    assert (result.num_iterations, result.num_episodes) == (0, 15)


async def test_evaluation_that_is_asked_for_while_an_iteration_runs_follows_it(
    client: Client, fakes: FakeActivities
) -> None:
    go_on = fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, small_config(num_iterations=1))
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await handle.execute_update("evaluate", EvaluateRequest(name="now"))
    go_on.set()
    assert (await handle.result()).num_episodes == 12 + 4
    acted = [
        each.episode.policy.version
        for each in fakes.requests("episode.take_turns")
        if "/evaluation/now/" in each.episode.prefix
    ]
    assert acted == [1] * 4
