"""The command ``loopwright sandbox run``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from loopwright.cli.sandbox_limits import Machine, read_limits
from tests.adapters.jails import needs_jails

COMMAND = (sys.executable, "-m", "loopwright.cli", "sandbox", "run")


def sandbox(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run((*COMMAND, *words), capture_output=True, text=True)


@pytest.mark.nsjail
@needs_jails
def test_output_is_passed_on_and_the_ending_is_told() -> None:
    done = sandbox("--", "python3", "-c", "print(6 * 7)")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "42\n"
    assert done.stderr.startswith("exit code 0")


@pytest.mark.nsjail
@needs_jails
def test_failing_command_is_a_record_and_no_failure_of_ours(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("1")
    words = (
        "--json",
        "--workspace",
        str(tmp_path),
        "--",
        "sh",
        "-c",
        "cat given; rm given; exit 7",
    )
    done = sandbox(*words)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["exit_code"], record["stdout"]) == (7, "1")
    assert record["workspace"]["files"] == []
    assert (tmp_path / "given").read_text() == "1"


@pytest.mark.nsjail
@needs_jails
def test_limits_and_input_reach_the_command(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"\xff" * 3000)
    limits = "wall=5,cpu=5,memory=64M,pids=8,output=1K,drain=2K,disk=2M"
    done = sandbox("--json", "--limits", limits, "--stdin", str(tmp_path / "in"), "--", "cat")
    record = json.loads(done.stdout)
    assert record["output_limit"]
    assert record["stdout"] == "\ufffd" * 1024
    assert record["limits"]["max_processes"] == 8


MACHINE = Machine(memory_bytes=8 << 30, max_processes=30_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pids=100000000", "pids: expected at most 30000, all that this kernel numbers, got "
         "100000000; ask for fewer, or raise sysctl kernel.pid_max"),
        ("memory=8193M", "memory: expected at most 8192M, the memory of this machine, got 8193M; "
         "ask for less"),
        ("disk=9G", "disk: expected at most 8192M, the memory of this machine, which holds its "
         "files, got 9G; ask for less"),
        ("wall=1000000", "wall: expected at most 86400, got 1000000; ask for less"),
        ("cpu=86401", "cpu: expected at most 86400, got 86401; ask for less"),
        ("output=2G", "output: expected at most 1G, got 2G; ask for less"),
        ("drain=99999999999999999999", "drain: expected at most 1024G, got 99999999999999999999; "
         "ask for less"),
        ("memory=99999999999999999999G", "memory: expected at most 8192M"),
        ("memory=1M", "memory: expected at least 16M, got 1M"),
        ("disk=1", "disk: expected at least 1M, got 1"),
        ("pids=0", "pids: expected at least 1, got 0"),
        ("wall=0", "wall: expected more than 0, got 0"),
        ("wall=-1", "wall: expected a number such as 5, got -1"),
        ("wall=1e9", "wall: expected a number such as 5, got 1e9"),
        ("wall", "wall: expected a number such as 5, got nothing"),
        ("memory=64MB", "memory: expected a number such as 64M, got 64MB"),
        ("pids=3K", "pids: expected a number such as 5, got 3K"),
        ("cpu=1.5", "cpu: expected a whole number, got 1.5"),
        ("cpu=1,cpu=2", "'cpu' is given twice"),
        ("cores=2", "'cores' is none of wall, cpu, memory, pids, output, drain, disk"),
    ],
)  # fmt: skip
def test_limit_that_cannot_be_is_named_with_what_can(text: str, expected: str) -> None:
    problems: list[str] = []
    read_limits(text, problems, MACHINE)
    assert len(problems) == 1
    assert problems[0].startswith(f"--limits: {expected}")


@pytest.mark.parametrize("name", ["wall", "cpu", "memory", "pids", "output", "drain", "disk"])
def test_largest_limit_that_is_named_is_taken(name: str) -> None:
    problems: list[str] = []
    read_limits(f"{name}=9999999999999", problems, MACHINE)
    most = problems[0].partition("at most ")[2].partition(",")[0]
    taken: list[str] = []
    read_limits(f"{name}={most}", taken, MACHINE)
    assert taken == []


def test_limits_of_this_machine_are_known() -> None:
    assert Machine.this().memory_bytes > 1 << 30
    assert Machine.this().max_processes > 100


def test_all_problems_are_named_at_once() -> None:
    done = sandbox(
        "--limits", "wall=0,cores=2,pids=3K,disk=1,cpu", "--workspace", "/no", "--", "true"
    )
    assert done.returncode == 2
    for problem in ("wall", "'cores'", "pids", "disk", "cpu", "'/no'"):
        assert problem in done.stderr
    assert "Traceback" not in done.stderr
