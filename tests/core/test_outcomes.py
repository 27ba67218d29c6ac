"""What two runs of a command are compared by."""

import hashlib
from typing import Any

import pytest

from loopwright.contracts.commands import CommandOutcome, Part
from loopwright.contracts.workspaces import CommandRequest, CommandResult, Workspace
from loopwright.core.outcomes import differing_parts, outcome_of
from loopwright.core.protocols import JailRun

RESULT = CommandResult(exit_code=0, stdout=b"out", num_stdout_bytes=3)
LEFT = Workspace.of({"a": b"1"})


def outcome(*, collect: bool = True, left: Workspace = LEFT, **changes: object) -> CommandOutcome:
    run = JailRun(result=RESULT.model_copy(update=changes), workspace=left)
    return outcome_of(run, CommandRequest(argv=("true",), collect=collect))


def test_outcome_holds_digests_of_all_that_came_out() -> None:
    found = outcome()
    assert found.stdout_sha256 == hashlib.sha256(b"out").hexdigest()
    assert found.stderr_sha256 == hashlib.sha256(b"").hexdigest()
    assert found.workspace == LEFT.digest


def test_workspace_that_was_not_collected_is_not_compared() -> None:
    assert outcome(collect=False).workspace is None


def test_time_and_memory_are_not_compared() -> None:
    changed = outcome(wall_seconds=5.0, cpu_seconds=5.0, peak_memory_bytes=5, is_suspect=True)
    assert differing_parts(outcome(), changed) == ()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"exit_code": 1}, Part.EXIT),
        ({"exit_code": None, "signal": 9}, Part.EXIT),
        ({"exit_code": None, "timed_out": True, "stdout": b""}, Part.TIMING),
        ({"stdout": b"other"}, Part.STDOUT),
        ({"num_stdout_bytes": 4}, Part.STDOUT),
        ({"stderr": b"?"}, Part.STDERR),
        ({"left": Workspace.of({"a": b"2"})}, Part.WORKSPACE),
    ],
)
def test_each_difference_has_its_name(changes: dict[str, Any], part: Part) -> None:
    changed = outcome(**changes)
    assert differing_parts(outcome(), changed) == (part,)
    assert differing_parts(changed, outcome()) == (part,)


def test_all_that_differs_is_named() -> None:
    assert differing_parts(outcome(), outcome(exit_code=1, stderr=b"?")) == (Part.EXIT, Part.STDERR)


@pytest.mark.parametrize("limit", ["timed_out", "oom", "output_limit"])
def test_how_much_an_ended_program_had_printed_is_chance(limit: str) -> None:
    ended: dict[str, Any] = {"exit_code": None, limit: True}
    one, other = (outcome(num_stdout_bytes=n, **ended) for n in (4, 5))
    assert differing_parts(one, other) == ()
