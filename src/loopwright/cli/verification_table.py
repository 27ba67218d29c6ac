"""Checks of recorded commands, as rows for a person and records for a program."""

from collections.abc import Iterator, Sequence
from shlex import join

from loopwright.contracts.commands import Part
from loopwright.trajectories.verification import CommandCheck

_SHOWN = 60
"""Characters of a command in a row."""
_GRADING = "grading"
HEADER = f"{'turn':<9}{'strict':<8}{'result':<24}command"


def line(check: CommandCheck) -> str:
    """Write one check as a row; what could not be run is told below it."""
    strict = "no" if check.record.request.strict is None else "yes"
    turn = _GRADING if check.turn is None else check.turn
    row = f"{turn:<9}{strict:<8}{_result(check):<24}{_shown(check.record.request.argv)}"
    return f"{row}\n{'':<9}{check.problem}" if check.problem else row


def summary(checks: Sequence[CommandCheck], *, num_turns: int, num_runs: int) -> Iterator[str]:
    """Count the checks, and say what a difference may come from."""
    turns = _count(num_turns, "turn")
    if any(check.turn is None for check in checks):
        turns += f" and {_GRADING}"
    if not checks:
        yield f"{turns} without a recorded command: nothing was run"
        return
    num_equal = sum(check.is_equal for check in checks)
    num_not_run = sum(bool(check.problem) for check in checks)
    times = "once" if num_runs == 1 else f"{num_runs} times"
    yield (
        f"{_count(len(checks), 'command')} of {turns}, each run {times}: {num_equal} equal, "
        f"{len(checks) - num_equal - num_not_run} different, {num_not_run} not run"
    )
    if any(check.parts and check.record.request.strict is None for check in checks):
        yield "programs that read the clock or entropy differ where their command was not strict"
    if any(Part.TIMING in check.parts and check.is_suspect for check in checks):
        yield "the host kept a command from running until it timed out: verify when it is less busy"


def record(check: CommandCheck) -> dict[str, object]:
    """Give one check as JSON."""
    request = check.record.request
    return {
        "turn": check.turn,
        "is_grading": check.turn is None,
        "command": check.index,
        "argv": list(request.argv),
        "is_strict": request.strict is not None,
        "result": "not_run" if check.problem else "differs" if check.parts else "equal",
        "parts": list(check.parts),
        "num_differing": check.num_differing,
        "is_suspect": check.is_suspect,
        "problem": check.problem,
        "recorded": check.record.outcome.model_dump(mode="json"),
        "runs": [outcome.model_dump(mode="json") for outcome in check.outcomes],
    }


def _result(check: CommandCheck) -> str:
    if check.problem:
        return "not run"
    if not check.parts:
        return "equal"
    num_runs = len(check.outcomes)
    share = f" ({check.num_differing}/{num_runs})" if num_runs > 1 else ""
    return f"differs: {', '.join(check.parts)}{share}"


def _shown(argv: Sequence[str]) -> str:
    """Write a command in one line of printable characters."""
    text = "".join(
        letter if letter.isprintable() else " " if letter.isspace() else "?"
        for letter in join(argv)
    )
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
