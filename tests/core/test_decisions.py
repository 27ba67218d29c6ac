"""Budgets, task selection, stopping, status, totals, seeds and ids."""

import pytest

from loopwright.contracts import ids
from loopwright.contracts.configs import EpisodeConfig
from loopwright.contracts.episodes import EpisodeResult, Verdict
from loopwright.contracts.evaluations import EvaluationResult
from loopwright.contracts.groups import GroupResult
from loopwright.contracts.iterations import LoopPhase, LoopStatus
from loopwright.contracts.policies import SamplingParams
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.turns import StopReason
from loopwright.core import budgets, curriculum, seeds, stopping, summaries
from loopwright.core.admission import Admission
from loopwright.core.loop_status import loop_status

SAMPLING = SamplingParams(max_tokens=50)
BUDGETS = EpisodeConfig(max_turns=2, max_tokens=100)


@pytest.mark.parametrize(("prompt", "left"), [(10, 50), (60, 40), (100, 0), (130, 0)])
def test_completion_fits_turn_and_episode_budget(prompt: int, left: int) -> None:
    assert budgets.completion_tokens(prompt, sampling=SAMPLING, budgets=BUDGETS) == left


@pytest.mark.parametrize(
    ("prompt_tokens", "seconds_spent", "stop"),
    [(9, 599.0, None), (9, 600.0, "timeout"), (100, 0.0, "max_tokens")],
)
def test_no_turn_begins_without_seconds_or_tokens(
    prompt_tokens: int, seconds_spent: float, stop: str | None
) -> None:
    found = budgets.stop_before_turn(
        prompt_tokens=prompt_tokens,
        seconds_spent=seconds_spent,
        sampling=SAMPLING,
        budgets=BUDGETS,
    )
    assert found == stop


@pytest.mark.parametrize(
    ("num_turns", "finish_reason", "asked", "stop"),
    [
        (1, "stop", None, None),
        (1, "stop", StopReason.COMPLETED, StopReason.COMPLETED),
        (1, "length", StopReason.COMPLETED, StopReason.MAX_TOKENS),
        (2, "stop", None, StopReason.MAX_TURNS),
    ],
)
def test_turn_ends_the_episode_for_one_clear_reason(
    num_turns: int, finish_reason: str, asked: StopReason | None, stop: StopReason | None
) -> None:
    got = budgets.stop_after_turn(
        num_turns=num_turns, finish_reason=finish_reason, asked=asked, budgets=BUDGETS
    )
    assert got == stop


def test_shares_follow_the_weights_and_add_up() -> None:
    assert curriculum.shares([1.0, 1.0, 1.0], 10) == [4, 3, 3]
    assert curriculum.shares([3.0, 1.0], 8) == [6, 2]
    assert curriculum.shares([1.5e308, 0.5e308], 8) == [6, 2]


def test_what_has_no_weight_has_no_share() -> None:
    assert curriculum.shares([0.0, 1.0, 1.0], 7) == [0, 4, 3]
    assert curriculum.shares([0.0, 0.0], 7) == [0, 0]


def test_same_seed_chooses_the_same_distinct_tasks() -> None:
    tasks = [TaskRef(environment="e", task_id=str(i)) for i in range(50)]
    chosen = curriculum.choose(tasks, 20, 7)
    assert chosen == curriculum.choose(tasks, 20, 7)
    assert len({task.task_id for task in chosen}) == 20
    with pytest.raises(ValueError, match="51 tasks asked for, 50"):
        curriculum.choose(tasks, 51, 7)


def test_target_must_be_reached_twice_in_a_row() -> None:
    assert stopping.target_is_reached([0.1, 0.9, 0.9], 0.9)
    assert not stopping.target_is_reached([0.9, 0.9, 0.8], 0.9)
    assert not stopping.target_is_reached([0.9], 0.9)
    assert not stopping.target_is_reached([0.9, 0.9], None)


def evaluation(iteration: int) -> EvaluationResult:
    return EvaluationResult(
        policy_version=iteration,
        iteration=iteration,
        num_tasks=2,
        samples=1,
        num_episodes=2,
        num_failed=0,
        num_lost=0,
        first_pass_rate=None,
        pass_rate=None,
        mean_reward=None,
        seconds=1.0,
    )


def test_evaluation_of_the_last_policy_is_found_where_it_was_evaluated() -> None:
    known = [evaluation(0), evaluation(2), evaluation(4)]
    assert stopping.evaluation_after(4, known) == known[2]
    assert stopping.evaluation_after(0, known) == known[0]
    assert stopping.evaluation_after(5, known) is None
    assert stopping.evaluation_after(0, [None]) is None


def test_seeds_tell_names_and_numbers_apart() -> None:
    assert seeds.derive("a", 1) == seeds.derive("a", 1)
    distinct = [seeds.derive("a", 1), seeds.derive("a", "1"), seeds.derive("a1"), seeds.derive(1)]
    assert len(set(distinct)) == 4
    assert all(0 <= seed < 2**31 for seed in distinct)


HOSTILE = [
    "a/b",
    "a:b",
    "..",
    ".",
    "",
    "é",
    "e\u0301",
    "~2f",
    "a~b",
    "x" * 300,
    "x" * 301,
    "\x00",
    "A",
    "a",
]


def test_hostile_task_ids_give_distinct_single_path_segments() -> None:
    slugs = [ids.slug(text) for text in HOSTILE]
    assert len(set(slugs)) == len(HOSTILE)
    assert all("/" not in slug and slug not in (".", "..") and len(slug) <= 80 for slug in slugs)


def test_totals_count_what_was_asked_and_never_recorded_as_lost() -> None:
    group = GroupResult(
        task=TaskRef(environment="e", task_id="t"),
        num_episodes=7,
        num_valid=6,
        num_passed=3,
        num_first_passed=2,
        mean_reward=0.5,
        num_completion_tokens=70,
        is_admitted=True,
        reason="",
        manifest=None,
    )
    totals = summaries.total([group], num_asked=8)
    assert (totals.num_failed, totals.num_lost) == (1, 1)
    assert (totals.pass_rate, totals.first_pass_rate) == (0.5, 1 / 3)
    assert summaries.total([], num_asked=8).pass_rate is None


def test_cancelled_episodes_are_neither_failed_nor_lost() -> None:
    task = TaskRef(environment="e", task_id="t")
    graded = EpisodeResult(
        index=0, status="graded", stop_reason=StopReason.COMPLETED, verdict=Verdict.PASS, reward=1.0
    )
    failed = EpisodeResult(index=1, status="failed", stop_reason=StopReason.FAILED)
    cancelled = EpisodeResult(index=2, status="cancelled", stop_reason=StopReason.CANCELLED)
    group = summaries.of_group(task, [graded, failed, cancelled], size=3, admission=Admission())
    assert (group.num_episodes, group.num_valid, group.num_passed) == (3, 1, 1)
    totals = summaries.total([group], num_asked=4)
    assert (totals.num_failed, totals.num_cancelled, totals.num_lost) == (1, 1, 1)
    assert totals.mean_reward == 1.0


def test_replaced_episode_is_counted_beside_those_asked_for() -> None:
    task = TaskRef(environment="e", task_id="t")
    failed = EpisodeResult(index=0, status="failed", stop_reason=StopReason.FAILED)
    graded = [
        EpisodeResult(index=i, status="graded", stop_reason=StopReason.COMPLETED, reward=1.0)
        for i in (1, 2)
    ]
    group = summaries.of_group(task, [failed, *graded], size=2, admission=Admission())
    assert (group.num_episodes, group.num_valid, group.num_replaced) == (3, 2, 1)
    totals = summaries.total([group], num_asked=2)
    assert (totals.num_episodes, totals.num_failed, totals.num_lost) == (3, 1, 0)


def test_interval_of_a_share_ends_where_shares_do() -> None:
    high = summaries.estimate_share([(2, 2), (1, 2), (2, 2)])
    low = summaries.estimate_share([(0, 2), (1, 2), (0, 2)])
    assert high is not None
    assert low is not None
    assert (high.mean, high.high) == (5 / 6, 1.0)
    assert (low.mean, low.low) == (1 / 6, 0.0)


@pytest.mark.parametrize(
    ("phase", "is_paused", "is_stopped", "status"),
    [
        ("iterating", False, False, "running"),
        ("idle", False, False, "running"),
        ("iterating", True, False, "pausing"),
        ("paused", True, False, "paused"),
        ("iterating", False, True, "stopping"),
        ("paused", True, True, "stopping"),
        ("ended", True, True, "stopped"),
        ("ended", False, False, "completed"),
    ],
)
def test_status_of_a_loop_follows_what_it_was_told(
    phase: LoopPhase, is_paused: bool, is_stopped: bool, status: LoopStatus
) -> None:
    assert loop_status(phase, is_paused=is_paused, is_stopped=is_stopped) == status
