"""What the Web UI shows of running workflows."""

from typing import Any

import pytest

from loopwright.contracts.groups import GroupResult
from loopwright.contracts.iterations import IterationResult, LoopProgress
from loopwright.contracts.progress import GroupProgress, IterationProgress, Trouble
from loopwright.contracts.tasks import TaskRef
from loopwright.core import details, states

TROUBLE = Trouble(workflow_id="loop/x/iteration/000001/task/a.t~20/episode/3", reason="no [host]")


def row(index: int) -> IterationResult:
    return IterationResult(
        index=index,
        outcome="trained",
        policy_version=index,
        checkpoint=None,
        num_episodes=24,
        num_groups=3,
        num_admitted=2,
        first_pass_rate=0.25,
        seconds={"rollout": 12.0},
    )


def loop_progress(num_rows: int, **changes: Any) -> LoopProgress:
    rows = tuple(row(index) for index in range(1, num_rows + 1))
    base = LoopProgress(
        loop_id="x",
        uid="u",
        phase="waiting_for_engine",
        detail="engine main is leased to loop/y",
        iteration=num_rows,
        num_requested=9,
        num_done=num_rows,
        policy_version=num_rows,
        results=rows,
    )
    return base.model_copy(update=changes)


def test_loop_shows_its_phase_and_its_newest_iterations_with_rates_and_links() -> None:
    shown = details.of_loop(loop_progress(7), namespace="default")
    assert shown.startswith("**waiting for engine** engine main is leased to loop/y\n\n7 of 9 ")
    first, *_, last = [line for line in shown.splitlines() if line.startswith("| [")]
    assert first.startswith("| [3](")
    # 24 episodes in 12 seconds
    link = "[7](/namespaces/default/workflows/loop%2Fx%2Fiteration%2F000007)"
    assert last == f"| {link} | trained | 25.0 % | 2/3 | 0 | 120.0 |"


def test_iteration_shows_counts_by_state_rate_and_links_to_failures() -> None:
    progress = IterationProgress(
        index=4,
        phase="collecting",
        groups={"waiting": 0, "under way": 2, "admitted": 1},
        episodes={"with reward": 7, "failed": 1},
        episodes_per_minute=30.04,
        troubles=(TROUBLE,),
    )
    assert details.of_iteration(progress, namespace="a b") == (
        "**Iteration 4**: collecting\n\nGroups: 2 under way, 1 admitted\n\n"
        "Episodes: 7 with reward, 1 failed; 30.0 a minute\n\nRecent failures:\n\n"
        "- [loop/x/iteration/000001/task/a.t\\~20/episode/3]"
        "(/namespaces/a%20b/workflows/loop%2Fx%2Fiteration%2F000001%2Ftask%2Fa.t~20%2Fepisode%2F3)"
        ": no \\[host\\]"
    )


def test_silence_is_shown() -> None:
    progress = IterationProgress(index=1, phase="collecting", silent_seconds=600)
    assert "Nothing has ended for 600 seconds" in details.of_iteration(progress, namespace="n")


@pytest.mark.parametrize("reason", ["x" * 100_000, "line\n" * 10_000, "[a](b) " * 10_000])
def test_what_is_shown_is_bounded_and_no_failure_writes_markdown(reason: str) -> None:
    many = tuple(Trouble(workflow_id=f"w{i}", reason=reason) for i in range(500))
    shown = details.of_group(GroupProgress(task_id=reason, troubles=many), namespace="n")
    assert len(shown) < 10_000
    assert "[a]" not in shown
    assert [line for line in shown.splitlines() if line.startswith("- [w490](")]


def group(**changes: Any) -> GroupResult:
    base = GroupResult(
        task=TaskRef(environment="a", task_id="t"),
        num_episodes=4,
        num_valid=2,
        num_passed=1,
        num_first_passed=1,
        num_cancelled=1,
        mean_reward=0.5,
        num_completion_tokens=1,
        is_admitted=True,
        reason="",
        manifest=None,
    )
    return base.model_copy(update=changes)


def test_groups_and_episodes_are_counted_by_state() -> None:
    lost = group(is_admitted=False, dropped_by="infra")
    dull = group(is_admitted=False, dropped_by="no_signal")
    ended = [group(), lost, lost, dull, group(is_admitted=False)]
    assert states.count_groups(ended, num_waiting=5, num_open=6) == {
        "waiting": 5,
        "under way": 6,
        "admitted": 1,
        "no signal": 1,
        "lost": 2,
        "parked": 0,
        "cancelled": 1,
    }
    assert states.count_episodes(ended) == {"with reward": 10, "failed": 5, "cancelled": 5}
