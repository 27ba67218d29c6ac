"""A running loop whose configuration is changed."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError

from loopwright.contracts.configs import EnvironmentConfig, IterationConfig, LoopConfig
from loopwright.contracts.evaluations import EvaluateRequest
from loopwright.contracts.failures import UserError
from loopwright.contracts.iterations import SetRequest, StopRequest
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop
from tests.workflows.test_loop import until_phase


async def set_keys(handle: WorkflowHandle[Any, Any], **changes: object) -> LoopConfig:
    request = SetRequest(changes={key.replace("__", "."): new for key, new in changes.items()})
    return LoopConfig.model_validate(await handle.execute_update("set", request))


async def until_training(fakes: FakeActivities) -> asyncio.Event:
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    return fakes.hold["trainer.train_step"]


@pytest.fixture
async def held(client: Client, fakes: FakeActivities) -> WorkflowHandle[Any, Any]:
    """Give a loop that stands in its first update."""
    fakes.hold["trainer.train_step"] = asyncio.Event()
    return await start_loop(client, small_config())


async def test_what_starts_later_follows_a_change(
    held: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    found = await set_keys(held, sampling__temperature=0.7, train__learning_rate=1e-6)
    assert found == LoopConfig.model_validate(await held.query("config"))
    go_on.set()
    await held.result()
    temperatures = [
        each.episode.sampling.temperature for each in fakes.requests("episode.take_turns")
    ]
    assert temperatures == [1.0] * 12 + [0.7] * 12
    first, second = fakes.requests("trainer.train_step")
    assert second.config.learning_rate < first.config.learning_rate / 10


async def test_refused_change_leaves_everything_and_nothing_in_the_history(
    held: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await set_keys(held, train__learning_rate=1e-6, seed=4)
    assert "seed: cannot change while a loop runs" in str(refused.value.cause)
    assert LoopConfig.model_validate(await held.query("config")) == small_config()
    go_on.set()
    await held.result()
    history = await held.fetch_history()
    assert not any(
        event.HasField("workflow_execution_update_accepted_event_attributes")
        for event in history.events
    )


async def test_number_of_iterations_can_be_raised_and_lowered_to_those_begun(
    held: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await set_keys(held, num_iterations=0)
    assert "expected at least the 1 begun, got 0" in str(refused.value.cause)
    await set_keys(held, num_iterations=9)
    await set_keys(held, num_iterations=1)
    go_on.set()
    assert (await held.result()).num_iterations == 1


async def test_loop_that_is_ending_takes_no_change(
    held: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    await held.execute_update("stop", StopRequest())
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await set_keys(held, train__learning_rate=1e-6)
    assert "is ending" in str(refused.value.cause)
    go_on.set()
    await held.result()


@pytest.mark.usefixtures("short_runs")
async def test_change_outlives_continue_as_new(client: Client, fakes: FakeActivities) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    iteration = IterationConfig(num_tasks=1, group_size=2)
    handle = await start_loop(client, small_config(num_iterations=5, iteration=iteration))
    go_on = await until_training(fakes)
    await set_keys(handle, iteration__group_size=3)
    go_on.set()
    result = await handle.result()
    assert [row.num_episodes for row in result.results][-2:] == [3, 3]
    assert (await handle.describe()).run_id != handle.first_execution_run_id


async def test_staleness_can_be_raised_while_an_iteration_runs(
    held: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    await set_keys(held, iteration__max_staleness=1, num_iterations=4)
    go_on.set()
    result = await held.result()
    assert [row.outcome for row in result.results] == ["trained"] * 4


PAIR = (EnvironmentConfig(id="a"), EnvironmentConfig(id="b"))


@pytest.fixture
async def held_pair(client: Client, fakes: FakeActivities) -> WorkflowHandle[Any, Any]:
    """Give a loop of two environments that stands in its first update."""
    fakes.hold["trainer.train_step"] = asyncio.Event()
    return await start_loop(client, small_config(environments=PAIR))


def environments_drawn(fakes: FakeActivities) -> list[set[str]]:
    """Give the environments of the episodes of each of two iterations."""
    episodes = [each.episode for each in fakes.requests("episode.take_turns")]
    return [
        {each.environment.id for each in episodes if f"/iteration/{index:06d}/" in each.prefix}
        for index in (1, 2)
    ]


async def test_environment_is_passed_by_in_the_iterations_to_come(
    held_pair: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    await set_keys(held_pair, environments__b__is_passed_by=True)
    go_on.set()
    await held_pair.result()
    assert environments_drawn(fakes) == [{"a", "b"}, {"a"}]


async def test_change_that_leaves_too_few_tasks_is_refused_and_the_loop_goes_on(
    held_pair: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    fakes.failures["control.select_tasks"] = [UserError("environment a has 2 train tasks")]
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await set_keys(held_pair, environments__b__is_passed_by=True)
    assert str(refused.value.cause) == "UserError: environment a has 2 train tasks"
    go_on.set()
    assert (await held_pair.result()).num_iterations == 2
    assert environments_drawn(fakes) == [{"a", "b"}, {"a", "b"}]


async def test_all_environments_cannot_be_passed_by(
    held_pair: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await set_keys(
            held_pair, environments__a__is_passed_by=True, environments__b__is_passed_by=True
        )
    assert "environments: expected one that is not passed by" in str(refused.value.cause)
    go_on.set()
    await held_pair.result()


async def test_evaluation_of_more_tasks_than_there_are_is_refused_and_the_loop_goes_on(
    held: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    fakes.failures["control.select_tasks"] = [
        UserError("environment a has 2 heldout tasks") for _ in range(2)
    ]
    for update, request in (
        ("evaluate", EvaluateRequest(name="weekly", num_tasks=200)),
        ("set", SetRequest(changes={"evaluation.num_tasks": 200, "evaluation.at_end": True})),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await held.execute_update(update, request)
        assert str(refused.value.cause) == "UserError: environment a has 2 heldout tasks"
    go_on.set()
    result = await held.result()
    assert (result.num_iterations, result.final_evaluation) == (2, None)


async def test_loop_that_is_left_open_does_first_what_it_was_asked_for(
    held: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    await set_keys(held, num_iterations=None)
    go_on.set()
    await until_phase(held, "idle")
    await held.execute_update("stop", StopRequest())
    assert (await held.result()).num_iterations == 2


async def test_loop_that_is_stopping_is_not_resumed(
    held: WorkflowHandle[Any, Any], fakes: FakeActivities
) -> None:
    go_on = await until_training(fakes)
    await held.execute_update("stop", StopRequest())
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await held.execute_update("resume")
    assert "is ending" in str(refused.value.cause)
    go_on.set()
    assert (await held.result()).num_iterations == 1
