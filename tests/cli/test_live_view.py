"""Progress as lines where there is no terminal, and as a table where there is one."""

import io

import pytest
from rich.console import Console

from loopwright.cli.live_view import LiveView
from loopwright.contracts.evaluations import Estimate, EvaluationResult
from loopwright.contracts.iterations import (
    IterationResult,
    LoopPhase,
    LoopProgress,
    LoopStatus,
)


def evaluation(iteration: int) -> EvaluationResult:
    estimate = Estimate(mean=0.7, low=0.65, high=0.75)
    return EvaluationResult(
        policy_version=iteration,
        iteration=iteration,
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


def state(
    num_iterations: int,
    phase: LoopPhase = "iterating",
    *,
    status: LoopStatus = "running",
    evaluated: tuple[int, ...] = (),
) -> LoopProgress:
    rows = tuple(
        IterationResult(
            index=index,
            outcome="trained",
            policy_version=index,
            checkpoint=None,
            num_episodes=192,
            num_groups=24,
            num_admitted=20,
            first_pass_rate=0.5,
            pass_rate=0.6,
            mean_reward=0.65,
            seconds={"rollout": 6.0, "total": 8.0},
        )
        for index in range(1, num_iterations + 1)
    )
    return LoopProgress(
        loop_id="first",
        uid="1f",
        phase=phase,
        status=status,
        evaluations=tuple(evaluation(index) for index in evaluated),
        iteration=num_iterations,
        num_requested=9,
        policy_version=num_iterations,
        results=rows,
    )


def test_each_iteration_is_one_line_and_told_once() -> None:
    stream = io.StringIO()
    with LiveView(stream=stream) as view:
        for number in (1, 1, 2):
            view.show(state(number))
    lines = stream.getvalue().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["iteration 1", "iteration 2"]
    assert "first answer 50.0 %, pass rate 60.0 %, reward 0.650" in lines[0]
    assert "admitted 20/24, 32.0 episodes/s; rollout 6.0 s, total 8.0 s" in lines[0]


def test_phase_is_told_when_it_changes() -> None:
    stream = io.StringIO()
    with LiveView(stream=stream) as view:
        for phase in ("starting", "starting", "paused"):
            view.show(state(0, phase))
    told = [line.partition(" (")[0] for line in stream.getvalue().splitlines()]
    assert told == ["loop first starting", "loop first paused"]


@pytest.mark.parametrize("status", ["stopped", "completed", "failed", "cancelled"])
def test_last_line_says_how_the_loop_ended(status: LoopStatus) -> None:
    stream = io.StringIO()
    with LiveView(stream=stream) as view:
        view.show(state(0, "ended", status=status))
    assert stream.getvalue() == f"loop first {status} (0 episodes)\n"


@pytest.mark.parametrize(("status", "then"), [("pausing", "paused"), ("stopping", "stopped")])
def test_what_follows_the_running_iteration_is_told(status: LoopStatus, then: str) -> None:
    stream = io.StringIO()
    with LiveView(stream=stream) as view:
        view.show(state(0, status=status))
    assert (
        stream.getvalue() == f"loop first iterating: iteration 0 of 9, then {then} (0 episodes)\n"
    )


def test_evaluation_is_told_after_the_iteration_it_followed() -> None:
    stream = io.StringIO()
    with LiveView(stream=stream) as view:
        view.show(state(1))
        view.show(state(2, evaluated=(1,)))
        view.show(state(3, evaluated=(1, 3)))
    lines = stream.getvalue().splitlines()
    expected = ["iteration 1", "policy after iteration 1", "iteration 2"]
    expected += ["iteration 3", "policy after iteration 3"]
    assert [line.partition(":")[0].partition(" (")[0] for line in lines] == expected
    assert "first answer 70.0 % (65.0 to 75.0)" in lines[1]


def test_terminal_shows_evaluations_in_a_column_and_the_newest_with_its_interval() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, height=30)
    with LiveView(console=console) as view:
        view.show(state(4, "ended", status="completed", evaluated=(2, 4)))
    shown = stream.getvalue()
    assert "held-out" in shown
    assert "policy after iteration 4 (version 4): first answer 70.0 % (65.0 to 75.0)" in shown


def test_iteration_that_was_stopped_says_so_with_its_cancelled_episodes() -> None:
    progress = state(1, "ended", status="stopped")
    row = progress.results[0].model_copy(update={"outcome": "stopped", "num_cancelled": 60})
    stream = io.StringIO()
    with LiveView(stream=stream) as view:
        view.show(progress.model_copy(update={"results": (row,)}))
    assert stream.getvalue().startswith("iteration 1 stopped: ")
    assert "60 of 192 cancelled" in stream.getvalue()


def test_terminal_shows_the_newest_iterations_that_fit() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, height=12)
    with LiveView(console=console) as view:
        view.show(state(30, "ended", status="completed"))
    shown = stream.getvalue()
    assert " 30 " in shown
    assert " 20 " not in shown
