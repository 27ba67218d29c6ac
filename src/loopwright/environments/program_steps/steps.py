"""The steps programs are made of: their words, their line of code and what they compute."""

import random
from collections.abc import Callable
from dataclasses import dataclass

MAX_INPUT = 20
"""Inputs are drawn from [-MAX_INPUT, MAX_INPUT]."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of step; ``{n}`` stands for its digit."""

    words: str
    code: str
    compute: Callable[[int, int], int]
    digits: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9)
    """Digits the step may have; empty when it has none."""


OPERATIONS: tuple[Operation, ...] = (
    Operation("add {n}", "x = x + {n}", lambda x, n: x + n, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
    Operation("subtract {n}", "x = x - {n}", lambda x, n: x - n, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
    Operation("multiply by {n}", "x = x * {n}", lambda x, n: x * n),
    Operation("divide by {n}", "x = x // {n}", lambda x, n: x // n),
    Operation("take it modulo {n}", "x = x % {n}", lambda x, n: x % n),
    Operation("raise to at least {n}", "x = max(x, {n})", lambda x, n: max(x, n)),
    Operation("lower to at most {n}", "x = min(x, {n})", lambda x, n: min(x, n)),
    Operation("square it", "x = x * x", lambda x, n: x * x, ()),
    Operation("negate it", "x = -x", lambda x, n: -x, ()),
    Operation("drop the sign", "x = abs(x)", lambda x, n: abs(x), ()),
)
"""The ten operations; division and modulo are Python's, towards minus infinity."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation with its digit."""

    operation: Operation
    digit: int = 0
    """0 when the operation has none."""

    @property
    def words(self) -> str:
        """Say the step."""
        return self.operation.words.format(n=self.digit)

    @property
    def code(self) -> str:
        """Write the step's line."""
        return self.operation.code.format(n=self.digit)


Program = tuple[Step, ...]


def draw_step(rng: random.Random) -> Step:
    """Draw one step."""
    operation = rng.choice(OPERATIONS)
    return Step(operation, rng.choice(operation.digits) if operation.digits else 0)


def draw_program(rng: random.Random, difficulty: int) -> Program:
    """Draw a program of ``difficulty`` steps, no step twice in a row."""
    steps: list[Step] = []
    while len(steps) < difficulty:
        step = draw_step(rng)
        if not steps or step != steps[-1]:
            steps.append(step)
    return tuple(steps)


def statement(program: Program) -> str:
    """Say a program, as in ``Take x, square it, then add 8``."""
    return "Take x, " + ", then ".join(step.words for step in program) + "."


def source(program: Program) -> str:
    """Write a program as a Python function of one argument."""
    lines = ["def f(x):", *(f"    {step.code}" for step in program), "    return x"]
    return "\n".join(lines) + "\n"


def run(program: Program, x: int) -> int:
    """Compute what a program returns."""
    for step in program:
        x = step.operation.compute(x, step.digit)
    return x
