"""Iterations that overlap: what may run beside what, and which version each learns from."""

import asyncio

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from loopwright.contracts.configs import EvaluationConfig, IterationConfig, LoopConfig
from loopwright.contracts.iterations import StopRequest
from loopwright.core import staleness
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop


def pipelined(*, max_staleness: int = 1, **changes: object) -> LoopConfig:
    iteration = IterationConfig(num_tasks=2, group_size=2, max_staleness=max_staleness)
    return small_config(iteration=iteration, num_iterations=4).model_copy(update=changes)


def num_acting(fakes: FakeActivities, iteration: int) -> int:
    """Count the episodes of an iteration that have begun to act."""
    part = f"/iteration/{iteration:06d}/"
    return sum(part in each.episode.prefix for each in fakes.requests("episode.take_turns"))


async def until_acting(fakes: FakeActivities, iteration: int) -> None:
    while num_acting(fakes, iteration) < 4:
        await asyncio.sleep(0.02)


async def test_next_iteration_collects_while_one_trains(
    client: Client, fakes: FakeActivities
) -> None:
    go_on = fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, pipelined())
    await until_acting(fakes, 2)
    assert num_acting(fakes, 3) == 0
    go_on.set()
    result = await handle.result()
    assert [row.outcome for row in result.results] == ["trained"] * 4
    assert (result.num_episodes, result.num_lost) == (16, 0)


async def test_each_iteration_learns_from_the_version_before_it(
    client: Client, fakes: FakeActivities
) -> None:
    result = await (await start_loop(client, pipelined())).result()
    trained = fakes.requests("trainer.train_step")
    steps = [(each.parent.policy.version, each.policy.version) for each in trained]
    assert steps == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [row.policy_version for row in result.results] == [1, 2, 3, 4]


@pytest.mark.parametrize("max_staleness", [0, 1, 2])
async def test_no_more_iterations_are_open_than_the_staleness_lets_be(
    client: Client, fakes: FakeActivities, max_staleness: int
) -> None:
    go_on = fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, pipelined(max_staleness=max_staleness))
    await until_acting(fakes, max_staleness + 1)
    await asyncio.sleep(0.3)
    assert num_acting(fakes, max_staleness + 2) == 0
    go_on.set()
    assert (await handle.result()).num_iterations == 4


async def test_overlapping_episodes_may_be_sampled_by_newer_versions(
    client: Client, fakes: FakeActivities
) -> None:
    evaluation = EvaluationConfig(num_tasks=2, samples=1, at_start=True, at_end=False)
    handle = await start_loop(client, pipelined(num_iterations=2, evaluation=evaluation))
    await handle.result()
    for request in fakes.requests("episode.take_turns"):
        assert request.episode.may_be_newer is (request.episode.kind == "training")


async def test_iterations_that_do_not_overlap_are_exactly_on_policy(
    client: Client, fakes: FakeActivities
) -> None:
    await (await start_loop(client, small_config())).result()
    assert not any(each.episode.may_be_newer for each in fakes.requests("episode.take_turns"))


async def test_stop_lets_every_open_iteration_end(client: Client, fakes: FakeActivities) -> None:
    go_on = fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, pipelined())
    await until_acting(fakes, 2)
    await handle.execute_update("stop", StopRequest())
    go_on.set()
    result = await handle.result()
    assert (result.outcome, result.num_iterations, result.num_episodes) == ("stopped", 2, 8)


async def test_stop_now_cancels_every_open_iteration_and_tells_of_each(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, pipelined())
    await until_acting(fakes, 2)
    await handle.execute_update("stop", StopRequest(now=True))
    result = await handle.result()
    assert [(row.index, row.outcome) for row in result.results] == [(1, "stopped"), (2, "stopped")]
    assert (result.num_episodes, result.num_lost) == (8, 0)
    assert fakes.holder is None


async def test_pause_starts_no_further_iteration(client: Client, fakes: FakeActivities) -> None:
    go_on = fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await start_loop(client, pipelined())
    await until_acting(fakes, 2)
    await handle.execute_update("pause")
    go_on.set()
    while (state := await handle.query("progress"))["phase"] != "paused":
        await asyncio.sleep(0.02)
    assert [row["index"] for row in state["results"]] == [1, 2]
    await handle.execute_update("resume")
    assert (await handle.result()).num_iterations == 4


async def test_failed_iteration_ends_the_loop_and_those_behind_it(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["trainer.train_step"] = [
        ApplicationError("loss is nan", type="TrainingDiverged", non_retryable=True)
    ]
    handle = await start_loop(client, pipelined())
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert "iteration 1 failed: TrainingDiverged: loss is nan" in str(failed.value.cause)
    assert fakes.holder is None


async def test_evaluation_between_iterations_is_of_one_version(
    client: Client, fakes: FakeActivities
) -> None:
    evaluation = EvaluationConfig(num_tasks=2, samples=1, at_start=False, at_end=False, every=1)
    handle = await start_loop(client, pipelined(num_iterations=3, evaluation=evaluation))
    result = await handle.result()
    versions = [(each.iteration, each.policy_version) for each in result.evaluations]
    assert versions == [(1, 1), (2, 2), (3, 3)]
    order = [
        name if name != "engine.load_policy" else request.checkpoint.policy.version
        for name, request in fakes.calls
        if name == "engine.load_policy" or "/evaluation/" in getattr(request, "prefix", "")
    ]
    assert [each for each in order if each != "control.score_group"] == [
        *(0, 1, "control.write_report", 2, "control.write_report", 3, "control.write_report")
    ]


@pytest.mark.usefixtures("short_runs")
async def test_overlapping_loop_continues_as_new_with_nothing_open(client: Client) -> None:
    handle = await start_loop(client, pipelined(num_iterations=7))
    result = await handle.result()
    assert (result.num_iterations, result.num_episodes, result.num_lost) == (7, 28, 0)
    assert result.checkpoint.policy.version == 7
    assert (await handle.describe()).run_id != handle.first_execution_run_id


@pytest.mark.parametrize(
    ("oldest", "trained_from", "left"),
    [(3, 3, 2), (2, 3, 1), (1, 3, 0), (0, 3, -1), (None, 9, None)],
)
def test_tokens_bear_fewer_publications_with_each(
    oldest: int | None, trained_from: int, left: int | None
) -> None:
    found = staleness.versions_left(oldest, trained_from=trained_from, max_staleness=2)
    assert found == left


@pytest.mark.parametrize(
    ("oldest", "trained_from", "max_staleness", "expected"),
    [
        (3, 3, 0, False),
        (2, 3, 0, True),
        (2, 3, 1, False),
        (1, 3, 1, True),
        (None, 9, 0, False),
    ],
)
def test_group_is_too_old_beyond_the_staleness(
    oldest: int | None, trained_from: int, max_staleness: int, expected: bool
) -> None:
    found = staleness.is_too_old(oldest, trained_from=trained_from, max_staleness=max_staleness)
    assert found is expected


async def test_stop_now_in_an_evaluation_cancels_the_iteration_that_collects_beside_it(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.is_held = lambda request: "/evaluation/" in request.prefix
    fakes.hold["control.write_report"] = asyncio.Event()
    evaluation = EvaluationConfig(num_tasks=2, samples=1, at_start=False, at_end=False, every=1)
    handle = await start_loop(client, pipelined(num_iterations=3, evaluation=evaluation))
    while fakes.counts()["control.write_report"] < 2:
        await asyncio.sleep(0.02)
    await until_acting(fakes, 2)
    await handle.execute_update("stop", StopRequest(now=True))
    result = await handle.result()
    assert [(row.index, row.outcome) for row in result.results] == [(1, "trained"), (2, "stopped")]
    assert (result.num_lost, fakes.holder) == (0, None)
