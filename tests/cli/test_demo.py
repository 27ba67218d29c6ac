"""Whether the demo starts its loop or goes on with the last one, and what it tells in the end."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from loopwright.cli.demo_result import DemoResult
from loopwright.cli.demo_run import LOOP_ID, DemoRequest, start_or_go_on
from loopwright.contracts.evaluations import Estimate, EvaluationResult
from loopwright.contracts.iterations import LoopResult
from loopwright.sdk import LoopClient
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config


def request(**changes: Any) -> DemoRequest:
    asked: dict[str, Any] = {
        "iterations": 2,
        "seed": 0,
        "num_tasks": 2,
        "group_size": 2,
        "is_fresh": False,
        "keep_running": False,
        "state": Path("nowhere"),
        "is_json": False,
    }
    return DemoRequest(**{**asked, **changes})


@pytest.fixture
def loops(temporal_client: Client, fakes: FakeActivities) -> LoopClient:
    """Give a client of a server on which every loop stands still at its start."""
    fakes.hold["control.select_tasks"] = asyncio.Event()
    return LoopClient(temporal_client)


async def test_first_demo_starts_its_loop(
    loops: LoopClient, capsys: pytest.CaptureFixture[str]
) -> None:
    handle = await start_or_go_on(loops, request())
    assert await handle.config() == request().config()
    assert capsys.readouterr().out == "starting loop demo\n"


async def test_unfinished_demo_is_gone_on_with(
    loops: LoopClient, capsys: pytest.CaptureFixture[str]
) -> None:
    await start_or_go_on(loops, request())
    capsys.readouterr()
    await start_or_go_on(loops, request())
    assert capsys.readouterr().out == "going on with the unfinished loop demo, iteration 1\n"


async def test_unfinished_demo_of_another_configuration_says_in_what_it_differs(
    loops: LoopClient, capsys: pytest.CaptureFixture[str]
) -> None:
    await start_or_go_on(loops, request())
    handle = await start_or_go_on(loops, request(iterations=5))
    assert (await handle.config()).num_iterations == 2
    assert "(num_iterations 2 -> 5); --fresh starts anew" in capsys.readouterr().out


async def test_paused_demo_is_resumed(
    temporal_client: Client, fakes: FakeActivities, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    loops = LoopClient(temporal_client)
    handle = await loops.start(small_config(), loop_id=LOOP_ID)
    await handle.pause()
    fakes.hold["trainer.train_step"].set()
    while (await handle.progress()).phase != "paused":
        await asyncio.sleep(0.02)
    await start_or_go_on(loops, request())
    assert "it was paused, and is resumed" in capsys.readouterr().out
    assert (await handle.result()).num_iterations == 2


async def test_demo_that_was_stopped_is_waited_for_and_started_anew(
    temporal_client: Client, fakes: FakeActivities, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    loops = LoopClient(temporal_client)
    first = await loops.start(small_config(), loop_id=LOOP_ID)
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await first.stop()
    second = asyncio.create_task(start_or_go_on(loops, request(iterations=5)))
    while "waiting for the end of loop demo" not in capsys.readouterr().out:
        await asyncio.sleep(0.02)
    fakes.hold["trainer.train_step"].set()
    assert (await (await second).config()).num_iterations == 5


async def test_fresh_demo_stops_the_unfinished_one(
    loops: LoopClient, capsys: pytest.CaptureFixture[str]
) -> None:
    await start_or_go_on(loops, request())
    handle = await start_or_go_on(loops, request(iterations=5, is_fresh=True))
    assert (await handle.config()).num_iterations == 5
    assert "stopping the unfinished loop demo to start anew" in capsys.readouterr().out


def test_demo_without_a_number_of_iterations_has_a_target() -> None:
    assert request(iterations=None).config().target_pass_rate == 0.87
    assert request(iterations=3).config().target_pass_rate is None


def evaluation(rate: float) -> EvaluationResult:
    estimate = Estimate(mean=rate, low=rate - 0.1, high=rate + 0.1)
    return EvaluationResult(
        policy_version=0,
        num_tasks=128,
        samples=4,
        num_episodes=512,
        num_failed=0,
        num_lost=0,
        first_pass_rate=estimate,
        pass_rate=estimate,
        mean_reward=estimate,
        seconds=9.0,
    )


def result(**changes: Any) -> DemoResult:
    loop = LoopResult(
        loop_id="demo",
        outcome="completed",
        checkpoint=None,
        num_iterations=2,
        num_episodes=1024,
        num_lost=0,
        base_evaluation=evaluation(0.25),
        final_evaluation=evaluation(0.75),
    )
    return DemoResult(loop.model_copy(update=changes), 12.0, Path("demo.html"), "http://ui")


def test_result_names_what_programs_rely_on() -> None:
    told = result().as_json(wall_seconds=20.0)
    promised = {
        "loop_id": "demo",
        "iterations": 2,
        "wall_seconds": 20.0,
        "base_pass_rate": 0.25,
        "final_pass_rate": 0.75,
        "episodes": 1024,
        "lost_episodes": 0,
        "report": "demo.html",
    }
    assert promised.items() <= told.items()


def test_lost_episodes_are_a_problem() -> None:
    assert result().problem is None
    assert result(num_lost=3).problem == "3 episodes have no recorded outcome"


def test_demo_whose_every_episode_failed_is_a_problem() -> None:
    failed = evaluation(0.25).model_copy(update={"num_failed": 512})
    problem = result(base_evaluation=failed, final_evaluation=failed).problem
    assert problem == "all 1024 episodes failed; demo.html says why"
