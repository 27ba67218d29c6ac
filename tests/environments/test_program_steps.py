"""The environment ``program_steps``: tasks, replies and rewards."""

from collections.abc import Iterator
from typing import Any

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.failures import TaskError, UserError
from loopwright.contracts.turns import StopReason
from loopwright.contracts.workspaces import Limits
from loopwright.environments.program_steps.demonstrations import demonstrations
from loopwright.environments.program_steps.environment import ProgramSteps, extract_answer
from loopwright.environments.registry import build_environment

ENVIRONMENT = ProgramSteps(EnvironmentConfig())
TRAIN, HELDOUT = ENVIRONMENT.list_tasks("train"), ENVIRONMENT.list_tasks("heldout")
TASK = ENVIRONMENT.load_task(TRAIN[0].task_id)
START = {"answer": None, "num_answers": 0}
WRONG = "def f(x):\n    return None\n"


@pytest.fixture(scope="module")
def jail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJail]:
    with LocalJail(tmp_path_factory.mktemp("jail"), num_slots=1) as jail:
        yield jail


def test_splits_share_no_task_and_no_statement() -> None:
    statements = [
        {ENVIRONMENT.load_task(ref.task_id).prompt for ref in refs} for refs in (TRAIN, HELDOUT)
    ]
    assert not statements[0] & statements[1]
    assert (len(statements[0]), len(statements[1])) == (len(TRAIN), len(HELDOUT))


def test_tasks_are_the_same_in_every_process_and_differ_by_seed() -> None:
    again = ProgramSteps(EnvironmentConfig()).list_tasks("train")
    other = ProgramSteps(EnvironmentConfig(options={"seed": 1})).list_tasks("train")
    assert again == TRAIN
    assert other != TRAIN


def test_difficulties_reach_from_one_to_four() -> None:
    assert {ref.difficulty for ref in HELDOUT} == {1, 2, 3, 4}


def test_hidden_cases_are_not_the_visible_ones() -> None:
    for ref in TRAIN[:50]:
        task = ENVIRONMENT.load_task(ref.task_id)
        visible = {case.args for case in task.visible_tests}
        assert len(visible) == 3
        assert not visible & {case.args for case in task.hidden_tests}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"level": 1}, "level"),
        ({"max_difficulty": 9}, "max_difficulty"),
        ({"min_difficulty": 3, "max_difficulty": 2}, "min_difficulty"),
        ({"num_tasks": 1, "seed": -1}, "num_tasks.*seed|seed.*num_tasks"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        ProgramSteps(EnvironmentConfig(options=options))


def test_unknown_environment_gets_the_nearest_name() -> None:
    with pytest.raises(UserError, match="did you mean 'program_steps'"):
        build_environment(EnvironmentConfig(id="program_stepz"))


def test_unknown_task_is_the_tasks_fault() -> None:
    with pytest.raises(TaskError, match="d1-none"):
        ENVIRONMENT.load_task("d1-none")


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("def f(x):\n    return x\n", "def f(x):\n    return x\n"),
        ("Sure.\n```python\ndef f(x):\n    return x\n```\nDone.", "def f(x):\n    return x\n"),
        ("I think:\ndef f(x): return x", "def f(x): return x"),
        ("```python\nimport math\nK = 3\ndef f(x): return K\n```", "import math\nK = 3\n"
         "def f(x): return K\n"),
        ("First:\nimport math\n@cache\ndef f(x): return x", "import math\n@cache\n"
         "def f(x): return x"),
        ("```\nno code\n```\n```python\ndef f(x): return x\n```", "def f(x): return x\n"),
        ("no program here", None),
        ("", None),
    ],
)  # fmt: skip
def test_answer_is_taken_bare_or_from_a_fence(completion: str, answer: str | None) -> None:
    assert extract_answer(completion) == answer


@pytest.mark.nsjail
def test_right_answer_ends_the_episode_with_the_whole_reward(jail: LocalJail) -> None:
    reply = ENVIRONMENT.reply(TASK, START, str(TASK.solution), jail=jail, limits=Limits())
    grade = ENVIRONMENT.grade(TASK, reply.state, jail=jail, limits=Limits())
    assert (reply.stop_reason, reply.messages) == (StopReason.COMPLETED, ())
    assert grade.reward == 1.0
    assert {name: c.score for name, c in grade.components.items()} == {
        "cases": 1.0, "all_cases": 1.0, "extra_turns": 0.0,
    }  # fmt: skip


@pytest.mark.nsjail
def test_wrong_answer_is_told_which_input_gave_what(jail: LocalJail) -> None:
    reply = ENVIRONMENT.reply(TASK, START, WRONG, jail=jail, limits=Limits())
    case = TASK.visible_tests[0]
    assert reply.stop_reason is None
    assert f"f({case.args[0]}) gave None, not {case.expected}" in reply.messages[0].content


@pytest.mark.nsjail
def test_second_answer_costs_a_twentieth(jail: LocalJail) -> None:
    first = ENVIRONMENT.reply(TASK, START, WRONG, jail=jail, limits=Limits())
    second = ENVIRONMENT.reply(TASK, first.state, str(TASK.solution), jail=jail, limits=Limits())
    grade = ENVIRONMENT.grade(TASK, second.state, jail=jail, limits=Limits())
    assert grade.reward == pytest.approx(0.95)


@pytest.mark.nsjail
def test_share_of_hidden_cases_is_worth_half_of_it(jail: LocalJail) -> None:
    inputs = [case.args[0] for case in TASK.hidden_tests[:3]]
    body = str(TASK.solution).replace("def f", "def g")
    partial = f"{body}\ndef f(x):\n    return g(x) if x in {inputs} else None\n"
    state = {"answer": partial, "num_answers": 1}
    grade = ENVIRONMENT.grade(TASK, state, jail=jail, limits=Limits())
    assert grade.reward == pytest.approx(0.5 * 3 / 9)


def test_demonstrations_repeat_by_seed_and_err_as_told() -> None:
    once = list(demonstrations(1, 300, error_rate=0.0))
    assert once == list(demonstrations(1, 300, error_rate=0.0))
    assert {len(messages) for messages in once} == {2}
    mended = [len(messages) for messages in demonstrations(1, 300, error_rate=0.4)]
    assert 0.3 < sum(n == 4 for n in mended) / 300 < 0.9


def test_demonstrations_never_use_a_held_out_task() -> None:
    held_out = {ENVIRONMENT.load_task(ref.task_id).prompt for ref in HELDOUT}
    shown = {messages[0].content for messages in demonstrations(2, 300, error_rate=0.2)}
    assert not shown & held_out
