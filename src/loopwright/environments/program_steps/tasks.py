"""The taskset: programs drawn from a seed, told apart by their statement, split by id."""

import hashlib
import random
from collections.abc import Sequence
from functools import cached_property

from pydantic import Field, ValidationError, model_validator

from loopwright.contracts.base import Contract, refusals
from loopwright.contracts.failures import TaskError, UserError
from loopwright.contracts.tasks import Case, Split, Task, TaskRef
from loopwright.environments.program_steps.steps import (
    MAX_INPUT,
    Program,
    draw_program,
    run,
    source,
    statement,
)

ENVIRONMENT_ID = "program_steps"
NUM_VISIBLE, NUM_HIDDEN = 3, 9
_HELDOUT_SHARE = 0.2
_DRAWS_PER_TASK = 40


class Options(Contract):
    """What the configuration may say of the taskset."""

    seed: int = Field(default=0, ge=0)
    """Another seed gives other tasks."""
    num_tasks: int = Field(default=4000, ge=10, le=100_000)
    """Distinct programs, both splits together; short programs run out first."""
    min_difficulty: int = Field(default=1, ge=1, le=4)
    max_difficulty: int = Field(default=4, ge=1, le=4)

    @model_validator(mode="after")
    def _is_ordered(self) -> "Options":
        if self.min_difficulty > self.max_difficulty:
            raise ValueError(
                f"min_difficulty ({self.min_difficulty}) must not exceed "
                f"max_difficulty ({self.max_difficulty})"
            )
        return self


def read_options(values: dict[str, object]) -> Options:
    """Check the environment's options.

    Raises:
        UserError: one is unknown or out of range; all problems are named.
    """
    try:
        return Options.model_validate(values, strict=True)
    except ValidationError as error:
        problems = "; ".join(refusals(error))
        known = ", ".join(Options.model_fields)
        raise UserError(f"environment {ENVIRONMENT_ID}: {problems}; options are {known}") from error


class Taskset:
    """Every task of one configuration, made once and in the same order everywhere."""

    def __init__(self, options: Options) -> None:
        self._options = options

    @cached_property
    def programs(self) -> dict[str, Program]:
        """Give the programs by task id; no two tasks have the same statement."""
        rng = random.Random(f"{ENVIRONMENT_ID}/{self._options.seed}")
        found: dict[str, Program] = {}
        for _ in range(self._options.num_tasks * _DRAWS_PER_TASK):
            if len(found) == self._options.num_tasks:
                break
            difficulty = rng.randint(self._options.min_difficulty, self._options.max_difficulty)
            program = draw_program(rng, difficulty)
            found.setdefault(task_id_of(program), program)
        return found

    def refs(self, split: Split) -> Sequence[TaskRef]:
        """List the tasks of a split."""
        return [
            TaskRef(environment=ENVIRONMENT_ID, task_id=task_id, difficulty=len(program))
            for task_id, program in self.programs.items()
            if split_of(task_id) == split
        ]

    def task(self, task_id: str) -> Task:
        """Give a task whole.

        Raises:
            TaskError: there is none of this id.
        """
        program = self.programs.get(task_id)
        if program is None:
            raise TaskError(f"environment {ENVIRONMENT_ID} has no task {task_id!r} at its options")
        return task_of(program)


def task_id_of(program: Program) -> str:
    """Name a program: ``d3-`` and a digest of its statement, so equal statements are one task."""
    digest = hashlib.sha256(statement(program).encode()).hexdigest()[:10]
    return f"d{len(program)}-{digest}"


def split_of(task_id: str) -> Split:
    """Assign a task to a split by the hash of its id, whatever the seed."""
    digest = hashlib.sha256(f"split/{task_id}".encode()).digest()
    return "heldout" if digest[0] < 256 * _HELDOUT_SHARE else "train"


def task_of(program: Program) -> Task:
    """Make the task of a program; its cases are drawn from its id."""
    task_id = task_id_of(program)
    rng = random.Random(f"cases/{task_id}")
    inputs = rng.sample(range(-MAX_INPUT, MAX_INPUT + 1), NUM_VISIBLE + NUM_HIDDEN)
    cases = tuple(Case(args=(x,), expected=run(program, x)) for x in inputs)
    return Task(
        task_id=task_id,
        prompt=statement(program),
        entry="f",
        visible_tests=cases[:NUM_VISIBLE],
        hidden_tests=cases[NUM_VISIBLE:],
        solution=source(program),
        difficulty=len(program),
    )
