"""Recorded commands are run again and compared."""

from pathlib import Path

import pytest

from loopwright.adapters.jail import FakeJail
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.commands import STDIN_FILE, CommandRecord, Part
from loopwright.contracts.failures import SandboxUnavailable, StoreError
from loopwright.contracts.turns import TurnRecord
from loopwright.contracts.workspaces import MIB, CommandRequest, CommandResult, Workspace
from loopwright.core.outcomes import outcome_of
from loopwright.core.protocols import Jail, JailRun
from loopwright.trajectories.verification import CommandCheck, check_commands
from tests.trajectories.records import record

GIVEN = Workspace.of({"given": b"1"})
RESULT = CommandResult(exit_code=0, stdout=b"out", num_stdout_bytes=3)
OTHER = RESULT.model_copy(update={"stdout": b"two"})


@pytest.fixture
def blobs(tmp_path: Path) -> Workspaces:
    workspaces = Workspaces(InMemoryObjectStore(), tmp_path, max_bytes=MIB)
    workspaces.keep(GIVEN)
    return workspaces


def command(stdin: str = "", workspace: Workspace = GIVEN) -> CommandRecord:
    request = CommandRequest(argv=("true",))
    outcome = outcome_of(JailRun(RESULT, workspace), request)
    return CommandRecord(request=request, stdin=stdin, workspace=workspace.digest, outcome=outcome)


def turns(*commands: CommandRecord) -> list[TurnRecord]:
    return [record(commands=commands)]


def check(jail: Jail, blobs: Workspaces, num_runs: int = 1) -> CommandCheck:
    (found,) = check_commands(turns(command()), jail=jail, blobs=blobs, num_runs=num_runs)
    return found


def test_same_outcome_is_equal(blobs: Workspaces) -> None:
    found = check(FakeJail.of([RESULT, RESULT]), blobs, num_runs=2)
    assert found.is_equal
    assert len(found.outcomes) == 2


def test_one_differing_run_of_several_is_told(blobs: Workspaces) -> None:
    found = check(FakeJail.of([RESULT, OTHER, RESULT]), blobs, num_runs=3)
    assert not found.is_equal
    assert (found.parts, found.num_differing) == ((Part.STDOUT,), 1)


def test_timeout_on_a_starved_host_is_a_matter_of_timing(blobs: Workspaces) -> None:
    late = CommandResult(timed_out=True, is_suspect=True)
    found = check(FakeJail.of([late]), blobs)
    assert found.parts == (Part.TIMING,)
    assert found.is_suspect


def test_command_that_cannot_be_run_is_a_problem_and_the_next_is_run(blobs: Workspaces) -> None:
    lost = command(workspace=Workspace.of({"nobody": b"kept"}))
    jail = FakeJail.of([SandboxUnavailable("no slot"), RESULT])
    checks = list(check_commands(turns(lost, command(), command()), jail=jail, blobs=blobs))
    assert [found.is_equal for found in checks] == [False, False, True]
    assert "is not in the store" in checks[0].problem
    assert checks[1].problem == "no slot"
    assert [(found.turn, found.index) for found in checks] == [(0, 0), (0, 1), (0, 2)]


def test_grading_is_run_after_the_turns(blobs: Workspaces) -> None:
    jail = FakeJail.of([RESULT, RESULT, OTHER])
    found = list(check_commands(turns(command()), grading=[command()] * 2, jail=jail, blobs=blobs))
    assert [(each.turn, each.index) for each in found] == [(0, 0), (None, 0), (None, 1)]
    assert [each.is_equal for each in found] == [True, True, False]


def test_store_that_fails_is_no_word_on_any_command(blobs: Workspaces) -> None:
    jail = FakeJail.of([RESULT, StoreError("S3 get failed")])
    checks = check_commands(turns(command(), command()), jail=jail, blobs=blobs)
    assert next(checks).is_equal
    with pytest.raises(StoreError, match="S3 get failed"):
        next(checks)


def test_standard_input_that_was_kept_apart_is_given_again(blobs: Workspaces) -> None:
    kept = blobs.keep(Workspace.of({STDIN_FILE: b"long"}))
    jail = FakeJail.of([RESULT])
    (found,) = check_commands(turns(command(stdin=kept)), jail=jail, blobs=blobs)
    assert found.is_equal
    assert jail.requests[0].stdin == b"long"
