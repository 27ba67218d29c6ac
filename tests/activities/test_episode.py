"""Turns and grades of episodes of ``program_steps``: real tokenizer, real jail, scripted engine."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from loopwright.adapters.engine import ScriptedEngine
from loopwright.adapters.jail import FakeJail
from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.configs import EnvironmentConfig, EpisodeConfig
from loopwright.contracts.episodes import (
    EpisodeInput,
    GradeEpisodeRequest,
    GradeEpisodeResult,
    TakeTurnsRequest,
    TakeTurnsResult,
    Verdict,
)
from loopwright.contracts.failures import (
    EngineUnavailable,
    EnvironmentFailure,
    SandboxUnavailable,
    StoreError,
    TaskError,
    UserError,
)
from loopwright.contracts.policies import CheckpointRef, SamplingParams
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.turns import StopReason, TurnHead
from loopwright.contracts.workspaces import MIB, CommandRequest
from loopwright.core.outcomes import outcome_of
from loopwright.environments.program_steps.environment import ProgramSteps
from loopwright.trajectories import codec
from loopwright.trajectories.rendering import Renderer
from tests.activities.conftest import EpisodeActivities
from tests.policies import PICO_DIRECTORY

pytestmark = pytest.mark.nsjail

START = TurnHead(num_turns=0, digest="")
TASK = ProgramSteps(EnvironmentConfig()).list_tasks("train")[3]
RIGHT = str(ProgramSteps(EnvironmentConfig()).load_task(TASK.task_id).solution)
WRONG = "def f(x):\n    return 'seven'\n"
RENDERER = Renderer(PICO_DIRECTORY)
Make = Callable[..., EpisodeActivities]


def tokens(text: str) -> tuple[int, ...]:
    """Give the completion that says ``text``."""
    ids = RENDERER._encode_content(text)
    return (*ids, RENDERER.stop_token_ids[0])


@pytest.fixture
def make(store: InMemoryObjectStore, jail: LocalJail, tmp_path: Path) -> Make:
    def build(*answers: str | EngineUnavailable | Sequence[int], **changes: Any) -> Any:
        script = [tokens(a) if isinstance(a, str) else a for a in answers]
        engine = ScriptedEngine(script)
        made = EpisodeActivities(
            changes.get("store", store), engine, changes.get("jail", jail), tmp_path
        )
        made.engine = engine  # type: ignore[attr-defined]
        return made

    return build


def episode_of(pico: CheckpointRef, **changes: Any) -> EpisodeInput:
    values = {
        "prefix": "loop/x/u/iteration/000001/task/t/episode/0",
        "kind": "training",
        "task": TASK,
        "environment": EnvironmentConfig(),
        "index": 0,
        "checkpoint": pico,
        "engine": "main",
        "sampling": SamplingParams(),
        "budgets": EpisodeConfig(),
        "seed": 5,
    }
    return EpisodeInput.model_validate(values | changes)


async def take(
    activity: ActivityEnvironment, made: EpisodeActivities, episode: EpisodeInput, **changes: Any
) -> TakeTurnsResult:
    values = {"head": START, "max_turns": 8} | changes
    request = TakeTurnsRequest(episode=episode, **values)
    result: TakeTurnsResult = await activity.run(made.take_turns, request)
    return result


async def grade(
    activity: ActivityEnvironment,
    made: EpisodeActivities,
    episode: EpisodeInput,
    turns: TakeTurnsResult,
) -> GradeEpisodeResult:
    request = GradeEpisodeRequest(
        episode=episode, head=turns.head, stop_reason=turns.stop_reason or StopReason.COMPLETED
    )
    result: GradeEpisodeResult = await activity.run(made.grade_episode, request)
    return result


@pytest.mark.parametrize(
    ("answers", "stop", "verdict", "reward", "is_first"),
    [
        ([RIGHT], StopReason.COMPLETED, Verdict.PASS, 1.0, True),
        ([WRONG, RIGHT], StopReason.COMPLETED, Verdict.PASS, 0.95, False),
        ([WRONG, WRONG], StopReason.MAX_TURNS, Verdict.FAIL, -0.05, False),
        (["no program", RIGHT], StopReason.COMPLETED, Verdict.PASS, 0.95, False),
        (["def f(x) return", "nothing"], StopReason.MAX_TURNS, Verdict.FAIL, -0.05, False),
    ],
)
async def test_answers_lead_to_stop_verdict_and_reward(
    activity: ActivityEnvironment,
    make: Make,
    pico: CheckpointRef,
    answers: list[str],
    stop: StopReason,
    verdict: Verdict,
    reward: float,
    is_first: bool,
) -> None:
    made, episode = make(*answers), episode_of(pico)
    turns = await take(activity, made, episode)
    graded = await grade(activity, made, episode, turns)
    assert (turns.stop_reason, turns.head.num_turns) == (stop, len(answers))
    assert (graded.grade.verdict, graded.first_answer_passed) == (verdict, is_first)
    assert graded.grade.reward == pytest.approx(reward)


async def test_workspace_of_each_turn_can_be_had_by_the_digest_in_its_record(
    activity: ActivityEnvironment,
    make: Make,
    pico: CheckpointRef,
    store: InMemoryObjectStore,
    tmp_path: Path,
) -> None:
    made, episode = make(WRONG, RIGHT), episode_of(pico)
    turns = await take(activity, made, episode)
    elsewhere = Workspaces(store, tmp_path / "elsewhere", max_bytes=MIB)
    records = made.resources.turn_log(episode).load(turns.head).records
    found = [elsewhere.load(str(record.workspace)) for record in records]
    assert [file.data for workspace in found for file in workspace.files] == [
        WRONG.encode(),
        RIGHT.encode(),
    ]


async def test_commands_of_a_turn_can_be_run_again_from_its_record(
    activity: ActivityEnvironment,
    make: Make,
    pico: CheckpointRef,
    store: InMemoryObjectStore,
    jail: LocalJail,
    tmp_path: Path,
) -> None:
    made, episode = make("no program", WRONG), episode_of(pico)
    turns = await take(activity, made, episode)
    none, one = made.resources.turn_log(episode).load(turns.head).records
    assert none.commands == ()
    (command,) = one.commands
    elsewhere = Workspaces(store, tmp_path / "elsewhere", max_bytes=MIB)
    again = jail.run(elsewhere.load(command.workspace), command.request)
    assert outcome_of(again, command.request) == command.outcome


async def test_turn_of_program_steps_costs_one_workspace_and_one_record(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    before = set(store.objects)
    episode = episode_of(pico)
    await take(activity, make(RIGHT), episode)
    new = sorted(set(store.objects) - before)
    assert [key.partition("/")[0] for key in new] == ["loop", "workspace"]


async def test_turn_whose_workspace_cannot_be_kept_is_not_committed(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    class RefusesWorkspaces(InMemoryObjectStore):
        def put(self, key: str, data: bytes) -> None:
            if key.startswith("workspace/"):
                raise StoreError("S3 put failed: out of space")
            super().put(key, data)

    refusing = RefusesWorkspaces()
    refusing.objects = store.objects
    made, episode = make(RIGHT, store=refusing), episode_of(pico)
    with pytest.raises(StoreError, match="out of space"):
        await take(activity, made, episode)
    assert made.resources.turn_log(episode).deepest().records == ()


async def test_trajectory_holds_the_engines_own_tokens(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    made, episode = make(WRONG, RIGHT), episode_of(pico)
    graded = await grade(activity, made, episode, await take(activity, made, episode))
    (sample,) = codec.decode(store.get(graded.trajectory.key)).samples
    sampled = [i for i, t in zip(sample.token_ids, sample.loss_mask, strict=True) if t]
    assert sampled == [*tokens(WRONG), *tokens(RIGHT)]
    first, second = made.engine.requests  # type: ignore[attr-defined]
    assert sample.token_ids[: len(second.token_ids)] == second.token_ids
    assert second.token_ids[: len(first.token_ids)] == first.token_ids
    assert first.seed != second.seed


async def test_second_attempt_takes_only_the_turn_that_is_missing(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made, episode = make(WRONG, EngineUnavailable("killed"), RIGHT), episode_of(pico)
    with pytest.raises(EngineUnavailable):
        await take(activity, made, episode)
    turns = await take(activity, made, episode)
    requests = made.engine.requests  # type: ignore[attr-defined]
    assert turns.head.num_turns == 2
    assert requests[1] == requests[2]


async def test_repeated_request_samples_nothing_and_gives_the_same(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made, episode = make(RIGHT), episode_of(pico)
    once = await take(activity, made, episode)
    assert await take(activity, made, episode) == once
    assert len(made.engine.requests) == 1  # type: ignore[attr-defined]


async def test_repeated_grading_gives_the_same_trajectory(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made, episode = make(RIGHT), episode_of(pico)
    turns = await take(activity, made, episode)
    once = await grade(activity, made, episode, turns)
    assert await grade(activity, made, episode, turns) == once


async def test_grading_found_in_the_store_is_not_done_again(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made, episode = make(RIGHT), episode_of(pico)
    turns = await take(activity, made, episode)
    once = await grade(activity, made, episode, turns)
    without_a_jail = make(jail=FakeJail.of([]))
    assert await grade(activity, without_a_jail, episode, turns) == once


async def test_trajectory_that_is_damaged_is_made_again(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    made, episode = make(RIGHT), episode_of(pico)
    turns = await take(activity, made, episode)
    once = await grade(activity, made, episode, turns)
    store.objects[once.trajectory.key] = b"damaged"
    again = await grade(activity, made, episode, turns)
    assert again.grade == once.grade
    assert codec.decode(store.get(again.trajectory.key)).verdict is Verdict.PASS


async def test_commands_of_grading_can_be_run_again_from_the_trajectory(
    activity: ActivityEnvironment,
    make: Make,
    pico: CheckpointRef,
    store: InMemoryObjectStore,
    jail: LocalJail,
    tmp_path: Path,
) -> None:
    made, episode = make(RIGHT), episode_of(pico)
    graded = await grade(activity, made, episode, await take(activity, made, episode))
    (command,) = codec.decode(store.get(graded.trajectory.key)).grading
    elsewhere = Workspaces(store, tmp_path / "elsewhere", max_bytes=MIB)
    (stdin,) = elsewhere.load(command.stdin).files
    request = command.request.model_copy(update={"stdin": elsewhere.read(stdin)})
    again = jail.run(elsewhere.load(command.workspace), request)
    assert outcome_of(again, request) == command.outcome


async def test_hidden_cases_are_kept_apart_from_every_record_of_their_episode(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    made, episode = make(RIGHT), episode_of(pico)
    turns = await take(activity, made, episode)
    graded = await grade(activity, made, episode, turns)
    hidden = json.dumps([case.args for case in _task().hidden_tests]).encode()
    (grading,) = codec.decode(store.get(graded.trajectory.key)).grading
    (turn,) = made.resources.turn_log(episode).load(turns.head).records
    requests = [command.request for command in (grading, *turn.commands)]
    assert not [request for request in requests if hidden in _given(request)]
    (apart,) = made.resources.workspaces.load(grading.stdin).files
    assert hidden in made.resources.workspaces.read(apart)


async def test_trajectory_names_the_turn_that_was_graded_whatever_was_committed_after_it(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    made, episode = make(WRONG, RIGHT), episode_of(pico)
    first = await take(activity, made, episode, max_turns=1)
    await take(activity, made, episode)
    graded = await grade(activity, made, episode, first)
    found = codec.decode(store.get(graded.trajectory.key))
    assert (found.head, len(found.turn_rewards)) == (first.head.digest, 1)


async def test_changed_request_does_not_resume_the_turns_of_the_old_one(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made = make(WRONG, WRONG, RIGHT)
    await take(activity, made, episode_of(pico))
    turns = await take(activity, made, episode_of(pico, seed=6))
    assert turns.head.num_turns == 1


async def test_chunk_ends_without_a_stop_and_the_next_goes_on(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made, episode = make(WRONG, RIGHT), episode_of(pico)
    first = await take(activity, made, episode, max_turns=1)
    assert (first.stop_reason, first.head.num_turns) == (None, 1)
    second = await take(activity, made, episode, head=first.head, max_turns=1)
    assert (second.stop_reason, second.head.num_turns) == (StopReason.COMPLETED, 2)
    assert second.num_completion_tokens == len(tokens(WRONG)) + len(tokens(RIGHT))


async def test_stopping_worker_ends_the_turn_it_is_at_and_the_next_worker_goes_on(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made, episode = make(WRONG, RIGHT), episode_of(pico)
    activity.worker_shutdown()
    first = await take(activity, made, episode)
    assert (first.stop_reason, first.head.num_turns) == (None, 1)
    second = await take(ActivityEnvironment(), made, episode, head=first.head)
    assert (second.stop_reason, second.head.num_turns) == (StopReason.COMPLETED, 2)


async def test_stopping_worker_tells_of_a_turn_committed_before_and_takes_no_other(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made, episode = make(WRONG, EngineUnavailable("away")), episode_of(pico)
    with pytest.raises(EngineUnavailable):
        await take(ActivityEnvironment(), made, episode)
    activity.worker_shutdown()
    turns = await take(activity, made, episode)
    assert (turns.stop_reason, turns.head.num_turns) == (None, 1)


async def test_turn_that_spends_all_time_is_the_last_one_and_is_graded(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made = make(WRONG, RIGHT)
    episode = episode_of(pico, budgets=EpisodeConfig(max_seconds=1e-9))
    turns = await take(activity, made, episode)
    assert (turns.stop_reason, turns.head.num_turns) == (StopReason.TIMEOUT, 1)
    assert (await grade(activity, made, episode, turns)).grade.verdict is Verdict.FAIL


async def test_task_without_room_for_a_turn_is_the_tasks_fault_and_no_reward(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    episode = episode_of(
        pico, budgets=EpisodeConfig(max_tokens=8), sampling=SamplingParams(max_tokens=4)
    )
    with pytest.raises(TaskError, match=r"opens with \d+ tokens"):
        await take(activity, make(RIGHT), episode)
    assert not store.list_keys(episode.prefix)


async def test_bug_of_an_environment_is_its_own_failure_and_no_turn(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    broken = FakeJail.of([ZeroDivisionError("a bug")])
    with pytest.raises(EnvironmentFailure, match="program_steps failed: ZeroDivisionError"):
        await take(activity, make(RIGHT, jail=broken), episode_of(pico))
    assert not store.list_keys(episode_of(pico).prefix)


async def test_cut_completion_is_a_limit_of_ours_and_no_answer(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    made, episode = make(RIGHT), episode_of(pico, sampling=SamplingParams(max_tokens=3))
    turns = await take(activity, made, episode)
    assert (turns.stop_reason, turns.num_completion_tokens) == (StopReason.MAX_TOKENS, 3)
    assert (await grade(activity, made, episode, turns)).grade.reward == 0


async def test_conversation_never_exceeds_its_tokens(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    opening = len(RENDERER.opening(ProgramSteps(EnvironmentConfig()).pose(_task()).messages))
    budgets = EpisodeConfig(max_tokens=opening + 10)
    made = make(RIGHT)
    episode = episode_of(pico, budgets=budgets, sampling=SamplingParams(max_tokens=9))
    await take(activity, made, episode)
    (request,) = made.engine.requests  # type: ignore[attr-defined]
    assert request.max_tokens <= 10


def _given(request: CommandRequest) -> bytes:
    """Give all that a program is given besides its workspace."""
    return b" ".join((request.stdin, *(word.encode() for word in (*request.argv, *request.env))))


def _task() -> Any:
    return ProgramSteps(EnvironmentConfig()).load_task(TASK.task_id)


async def test_jail_that_cannot_work_commits_no_turn_and_gives_no_verdict(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef, store: InMemoryObjectStore
) -> None:
    broken = FakeJail.of([SandboxUnavailable("no slot")])
    with pytest.raises(SandboxUnavailable):
        await take(activity, make(RIGHT, jail=broken), episode_of(pico))
    assert not store.list_keys(episode_of(pico).prefix)


async def test_engine_this_worker_does_not_know_is_named(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    with pytest.raises(UserError, match=r"engine 'other' .*known: main"):
        await take(activity, make(RIGHT), episode_of(pico, engine="other"))


async def test_task_that_does_not_exist_is_named(
    activity: ActivityEnvironment, make: Make, pico: CheckpointRef
) -> None:
    task = TaskRef(environment="program_steps", task_id="d9-nothing")
    with pytest.raises(Exception, match="d9-nothing"):
        await take(activity, make(RIGHT), episode_of(pico, task=task))
