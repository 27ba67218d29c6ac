"""Tasks: the problem a policy works on, by value and by reference."""

from typing import Any, Literal

from pydantic import Field

from loopwright.contracts.base import Contract

Split = Literal["train", "heldout"]


class TaskRef(Contract):
    """Names one task of one environment; what travels through workflows."""

    environment: str
    """Id of the environment the task belongs to."""
    task_id: str
    """Stable identity, unique within its environment."""
    difficulty: int = 0
    """Difficulty by the environment's own scale; 0 when it has none."""


class Case(Contract):
    """One call of the function under test: arguments in, value out."""

    args: tuple[Any, ...]
    """JSON values passed as positional arguments."""
    expected: Any
    """JSON value the call must return."""


class Task(Contract):
    """One problem with all data needed to pose and grade it.

    Example:
        ``Task(task_id="add", entry="add", prompt="Write add(a, b).", visible_tests=(...),
        hidden_tests=(...))``
    """

    task_id: str
    prompt: str
    """What the policy is asked, in words."""
    entry: str
    """Name of the function that the cases call."""
    visible_tests: tuple[Case, ...]
    """Cases whose inputs and outputs the policy may see."""
    hidden_tests: tuple[Case, ...] = Field(min_length=1)
    """Cases that decide the reward; never staged where the policy acts."""
    solution: str | None = None
    """Reference program; passes every case."""
    difficulty: int = 0
