"""Commands of a turn are remembered with all that it takes to run them again."""

import pytest

from loopwright.activities.episode.recording_jail import RecordingJail
from loopwright.adapters.jail import FakeJail
from loopwright.contracts.commands import MAX_STDIN_BYTES
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import CommandRequest, CommandResult, Workspace
from loopwright.core.outcomes import outcome_of

GIVEN = Workspace.of({"given": b"1"})


def test_run_is_passed_on_and_recorded() -> None:
    inner = FakeJail.of([CommandResult(exit_code=3, stdout=b"x")])
    jail, request = RecordingJail(inner), CommandRequest(argv=("a", "b"), stdin=b"in")
    done = jail.run(GIVEN, request)
    assert inner.requests == [request]
    (record,) = jail.commands
    assert (record.request, record.workspace) == (request, GIVEN.digest)
    assert record.outcome == outcome_of(done, request)
    assert jail.workspaces == (GIVEN,)


def test_same_workspace_is_kept_once_for_several_commands() -> None:
    jail = RecordingJail(FakeJail.of([CommandResult(), CommandResult()]))
    for word in ("first", "second"):
        jail.run(Workspace.of({"given": b"1"}), CommandRequest(argv=(word,)))
    assert [record.request.argv for record in jail.commands] == [("first",), ("second",)]
    assert jail.workspaces == (GIVEN,)


@pytest.mark.parametrize(("excess", "is_apart"), [(0, False), (1, True)])
def test_long_standard_input_is_kept_apart(excess: int, is_apart: bool) -> None:
    data = b"x" * (MAX_STDIN_BYTES + excess)
    jail = RecordingJail(FakeJail.of([CommandResult()]))
    jail.run(GIVEN, CommandRequest(argv=("cat",), stdin=data))
    (record,) = jail.commands
    kept = {workspace.digest: workspace for workspace in jail.workspaces}
    stdin = kept[record.stdin].files[0].data if is_apart else record.request.stdin
    assert bool(record.stdin) is is_apart
    assert stdin == data


def test_every_standard_input_is_kept_apart_where_records_may_hold_none() -> None:
    jail = RecordingJail(FakeJail.of([CommandResult(), CommandResult()]), max_stdin_bytes=0)
    for data in (b"", b"hidden"):
        jail.run(GIVEN, CommandRequest(argv=("cat",), stdin=data))
    none, one = jail.commands
    assert (none.request.stdin, none.stdin, one.request.stdin) == (b"", "", b"")
    kept = {workspace.digest: workspace for workspace in jail.workspaces}
    assert kept[one.stdin].files[0].data == b"hidden"


def test_command_that_could_not_be_run_is_not_recorded() -> None:
    jail = RecordingJail(FakeJail.of([SandboxUnavailable("no slot")]))
    with pytest.raises(SandboxUnavailable):
        jail.run(GIVEN, CommandRequest(argv=("true",)))
    assert (jail.commands, jail.workspaces) == ((), ())
