"""Progress as lines where there is no terminal, and as a table where there is one."""

import io

from rich.console import Console

from loopwright.cli.live_view import LiveView
from loopwright.contracts.iterations import IterationResult, LoopPhase, LoopProgress


def state(num_iterations: int, phase: LoopPhase = "iterating") -> LoopProgress:
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


def test_terminal_shows_the_newest_iterations_that_fit() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, height=12)
    with LiveView(console=console) as view:
        view.show(state(30, "ended"))
    shown = stream.getvalue()
    assert " 30 " in shown
    assert " 20 " not in shown
