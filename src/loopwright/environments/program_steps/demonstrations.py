"""Conversations to imitate: first answers that err, and second ones that mend them."""

import random
from collections.abc import Iterator

from loopwright.contracts.turns import Message
from loopwright.environments.program_steps.feedback import describe_failure
from loopwright.environments.program_steps.steps import Program, Step, draw_step, run, source
from loopwright.environments.program_steps.tasks import Options, Taskset, split_of, task_of

_SECOND_ERROR_SHARE = 0.5
"""Second answers err this much less often than first ones."""


def demonstrations(seed: int, count: int, *, error_rate: float) -> Iterator[tuple[Message, ...]]:
    """Give conversations over training tasks, whose assistant messages are to be imitated.

    Args:
        seed: the same seed gives the same conversations.
        count: number of conversations.
        error_rate: share of lines that a first answer gets wrong, in [0, 1].
    """
    programs = [
        program
        for task_id, program in Taskset(Options()).programs.items()
        if split_of(task_id) == "train"
    ]
    rng = random.Random(f"demonstrations/{seed}")
    for _ in range(count):
        yield _conversation(rng, rng.choice(programs), error_rate)


def _conversation(rng: random.Random, program: Program, error_rate: float) -> tuple[Message, ...]:
    task = task_of(program)
    answer = _with_errors(rng, program, error_rate)
    messages = [
        Message(role="user", content=task.prompt),
        Message(role="assistant", content=source(answer)),
    ]
    for case in task.visible_tests:
        got = run(answer, case.args[0])
        if got != case.expected:
            second = _with_errors(rng, program, error_rate * _SECOND_ERROR_SHARE)
            messages += [
                Message(role="user", content=describe_failure(case, repr(got))),
                Message(role="assistant", content=source(second)),
            ]
            break
    return tuple(messages)


def _with_errors(rng: random.Random, program: Program, error_rate: float) -> Program:
    return tuple(_wrong(rng, step) if rng.random() < error_rate else step for step in program)


def _wrong(rng: random.Random, step: Step) -> Step:
    """Replace a step by one of another operation or another digit."""
    while True:
        other = draw_step(rng)
        if other != step:
            keeps_operation = bool(step.operation.digits) and rng.random() < 0.5
            if not keeps_operation:
                return other
            digits = [digit for digit in step.operation.digits if digit != step.digit]
            return Step(step.operation, rng.choice(digits))
