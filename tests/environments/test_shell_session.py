"""Reports of the script around a command, honest and forged, and the session they give."""

import pytest

from loopwright.environments.shell_report import MAX_REPORT_BYTES, read_report
from loopwright.environments.shell_session import MAX_VARIABLE_BYTES, ShellSession

BEFORE = ShellSession(cwd="/workspace/src", variables={"OLD": "1"})


def report(
    *, cwd: bytes = b"/workspace", before: bytes = b"A=1\0", after: bytes = b"A=1\0"
) -> bytes:
    return b":start 2\0:cwd %b\0:before\0%b:after\0%b:end\0:strays \0" % (cwd, before, after)


def test_directory_and_exported_variables_carry_over() -> None:
    after = b"A=2\0B=with = and\nlines\0"
    session = read_report(report(cwd=b"/tmp/x", after=after), BEFORE).session
    assert session == ShellSession(cwd="/tmp/x", variables={"A": "2", "B": "with = and\nlines"})


def test_variable_that_was_taken_away_stays_away() -> None:
    session = read_report(report(before=b"A=1\0TZ=UTC\0"), BEFORE).session
    assert session.unset == ("TZ",)


def test_what_a_shell_sets_for_itself_does_not_carry_over() -> None:
    after = b"A=1\0PWD=/x\0SHLVL=1\0_=/bin/cat\0BASH_ENV=/x\0SHELLOPTS=x\0BASH_FUNC_f%%=() {}\0"
    assert read_report(report(after=after), BEFORE).session.variables == {}


@pytest.mark.parametrize("value", [b"x" * MAX_VARIABLE_BYTES, b"'" * 2000, b"\xff"])
def test_variable_that_cannot_be_kept_is_named(value: bytes) -> None:
    read = read_report(report(after=b"BIG=%b\0SMALL=1\0" % value), BEFORE)
    assert read.session.variables == {"SMALL": "1"}
    assert read.notes == ("not carried over, too long or not UTF-8: BIG",)


def test_variables_together_stay_within_their_bound() -> None:
    after = b"".join(b"V%02d=%b\0" % (number, b"x" * 4000) for number in range(20))
    read = read_report(report(after=after), BEFORE)
    assert len(read.session.variables) == 8
    assert read.notes[0].endswith("V08, V09, V10, V11, V12 and 7 more")


def test_directory_that_cannot_be_named_is_not_kept() -> None:
    read = read_report(report(cwd=b"/workspace/\xff"), BEFORE)
    assert read.session.cwd == "/workspace/src"
    assert "cannot be kept" in read.notes[0]


def test_directory_that_is_gone_is_told() -> None:
    read = read_report(b":lost\0" + report(), BEFORE)
    assert read.notes == ("the working directory /workspace/src is gone, back in /workspace",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        b":start",
        b":start 2\0:cwd\0",
        b":start \xff\0:strays 5 (a) S \xff 1\0:service\0",
        b":start 2\0:end\0:after\0=\0:before\0",
        b":cwd relative\0:before\0:after\0\0=x\0" + b"A" * 70_000,
        b":start 2\0:before\0A=1\0:after\0B=2\0",
        b":start 2\0:strays \n\n(\n1 (\n2 (x) S\n",
    ],
)
def test_broken_report_leaves_the_session_as_it_was(data: bytes) -> None:
    read = read_report(data, ShellSession())
    assert read.session == ShellSession()
    assert ShellSession.model_validate_json(read.session.model_dump_json()) == read.session


def test_strays_are_the_commands_own_not_those_of_a_service() -> None:
    lines = (
        b"8 (sleep) S 1 2 2\n9 (worker) S 4 2 2\n10 (deep) S 9 2\n11 (a) b) R 8 1\n12 (x) S 2 1\n"
    )
    read = read_report(b":start 2\0:strays %b\0" % lines, BEFORE)
    assert read.strays == ("a) b", "sleep", "x")


def test_strays_that_claim_to_be_their_own_parents_are_counted() -> None:
    lines = b"8 (a) S 9 2\n9 (b) S 8 2\n"
    assert read_report(b":start 2\0:strays %b\0" % lines, BEFORE).strays == ("a", "b")


def test_service_that_is_not_ready_is_told() -> None:
    records = b":start 2\0:service db ready\0:service web 3\0:service api late\0"
    assert read_report(records, BEFORE).failed_services == (
        "service web ended with exit code 3, see /tmp/web.log while a command runs",
        "service api was not ready in time, see /tmp/api.log while a command runs",
    )


def test_report_that_is_too_long_is_read_to_its_bound_and_the_policy_told() -> None:
    flood = b"".join(b":%x\0" % number for number in range(MAX_REPORT_BYTES // 4))
    read = read_report(b":start 2\0" + flood + report(), BEFORE)
    assert (read.is_started, read.session) == (True, BEFORE)
    assert read.notes == ("what its shell told was too long to be read to the end",)


def test_each_process_of_a_long_line_of_parents_is_asked_for_once() -> None:
    last = 40_000
    line = "".join(f"{pid} (a) S {pid + 1} \n" for pid in range(10, last))
    read = read_report(f":start 2\0:strays {line}{last} (b) S 1 \n\0".encode(), BEFORE)
    assert len(read.strays) == last - 9


def test_processes_that_call_each_other_parents_are_strays() -> None:
    lines = b"5 (a) S 6 \n6 (b) S 5 \n7 (c) S 6 \n8 (d) S 9 \n"
    assert read_report(b":start 2\0:strays %b\0" % lines, BEFORE).strays == ("a", "b", "c")
