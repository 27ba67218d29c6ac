"""Drawing tasks from several environments at once."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from loopwright.activities.control.select_tasks import select_tasks
from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.failures import UserError
from loopwright.contracts.iterations import SelectTasksRequest
from loopwright.contracts.tasks import Split, TaskRef
from loopwright.environments.program_steps import ProgramSteps
from tests.environments.riddles import NUM_TASKS, Riddles, install

STEPS = EnvironmentConfig(id="program_steps")
RIDDLES = EnvironmentConfig(id="riddles")


@pytest.fixture(autouse=True)
def _riddles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an environment of another package."""
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def draw(
    *environments: EnvironmentConfig, num_tasks: int = 6, split: Split = "train", seed: int = 1
) -> tuple[TaskRef, ...]:
    request = SelectTasksRequest(
        environments=environments, split=split, num_tasks=num_tasks, seed=seed
    )
    return select_tasks(request).tasks


def counts(tasks: Sequence[TaskRef]) -> Counter[str]:
    return Counter(task.environment for task in tasks)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [((1, 1), (3, 3)), ((2, 1), (4, 2)), ((5, 1), (5, 1)), ((1, 9), (1, 5))],
)
def test_environments_give_tasks_by_their_weights(
    weights: tuple[float, float], expected: tuple[int, int]
) -> None:
    steps, others = (
        environment.model_copy(update={"weight": weight})
        for environment, weight in zip((STEPS, RIDDLES), weights, strict=True)
    )
    found = counts(draw(steps, others))
    assert (found["program_steps"], found["riddles"]) == expected


def test_no_task_is_drawn_twice() -> None:
    tasks = draw(STEPS, RIDDLES, num_tasks=12)
    assert len(set(tasks)) == 12


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_every_environment_gives_tasks_of_the_split_that_is_asked_for(split: Split) -> None:
    there = [*ProgramSteps(STEPS).list_tasks(split), *Riddles(RIDDLES).list_tasks(split)]
    tasks = draw(STEPS, RIDDLES, split=split)
    assert counts(tasks) == {"program_steps": 3, "riddles": 3}
    assert all(task in there for task in tasks)


def test_same_request_draws_the_same_tasks_and_another_seed_others() -> None:
    assert draw(STEPS, RIDDLES) == draw(STEPS, RIDDLES)
    assert draw(STEPS, RIDDLES) != draw(STEPS, RIDDLES, seed=2)


def test_environment_that_is_too_small_for_its_share_is_named() -> None:
    asked = 2 * (NUM_TASKS + 1)
    with pytest.raises(UserError, match="environment riddles has 6 train tasks, 7 are asked for"):
        draw(STEPS, RIDDLES, num_tasks=asked)


def test_environment_that_is_passed_by_gives_no_tasks_to_train_on_but_to_evaluate() -> None:
    passed_by = RIDDLES.model_copy(update={"is_passed_by": True})
    assert counts(draw(STEPS, passed_by)) == {"program_steps": 6}
    assert counts(draw(STEPS, passed_by, split="heldout")) == {"program_steps": 3, "riddles": 3}


def test_difficulties_that_are_passed_by_are_trained_on_no_more() -> None:
    steps = STEPS.model_copy(update={"difficulties_passed_by": (1, 4)})
    assert {task.difficulty for task in draw(steps, num_tasks=60)} == {2, 3}
    assert 4 in {task.difficulty for task in draw(steps, num_tasks=60, split="heldout")}


def test_environment_that_is_too_small_without_what_is_passed_by_is_named() -> None:
    riddles = RIDDLES.model_copy(update={"difficulties_passed_by": (0,)})
    expected = r"riddles has 0 train tasks \(6 more are passed by\), 3 are asked for"
    with pytest.raises(UserError, match=expected):
        draw(STEPS, riddles)
