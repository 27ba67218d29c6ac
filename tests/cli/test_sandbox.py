"""The command ``loopwright sandbox run``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopwright.cli.sandbox_limits import Machine, read_limits
from tests.adapters.jails import needs_jails
from tests.servers import ACCESS_KEY, SECRET_KEY, free_port, s3_server

COMMAND = (sys.executable, "-m", "loopwright.cli", "sandbox", "run")


def sandbox(
    *words: str, folder: Path | None = None, variables: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **(variables or {})}
    command = (*COMMAND, *words)
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def platform(s3_port: int) -> dict[str, str]:
    """Name a platform of which the commands here need the store only."""
    return {
        "LOOPWRIGHT_TEMPORAL_ADDRESS": "127.0.0.1:9",
        "LOOPWRIGHT_S3_ENDPOINT": f"http://127.0.0.1:{s3_port}",
        "LOOPWRIGHT_S3_ACCESS_KEY": ACCESS_KEY,
        "LOOPWRIGHT_S3_SECRET_KEY": SECRET_KEY,
    }


@pytest.mark.nsjail
@needs_jails
def test_output_is_passed_on_and_the_ending_is_told() -> None:
    done = sandbox("--", "python3", "-c", "print(6 * 7)")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "42\n"
    assert done.stderr.startswith("exit code 0")


@pytest.mark.nsjail
@needs_jails
def test_processes_that_memory_ran_out_for_are_told_of_a_command_that_ended_well() -> None:
    done = sandbox("--", "sh", "-c", "python3 -c 'bytearray(1 << 30)'; true")
    assert done.stderr.splitlines()[-1].startswith("exit code 0")
    assert done.stderr.endswith(", which ran out: processes killed: 1\n")


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
@pytest.mark.s3
@needs_jails
def test_workspace_of_one_run_is_given_to_the_next_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "big").write_bytes(os.urandom(100_000))
    with s3_server(tmp_path, port := free_port()):
        words = ("--", "sh", "-c", "mkdir out; ln -s /etc away; echo 1 > a")
        first = sandbox(
            *("--json", "--workspace", "given", *words), folder=tmp_path, variables=platform(port)
        )
        record = json.loads(first.stdout)["workspace"]
        assert record["is_kept"], first.stderr
        assert record["files"] == ["a", "big", "out/"]
        assert [skip["path"] for skip in record["skipped"]] == ["away"]
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        words = ("--", "sh", "-c", "cat a; wc -c < big; ls out")
        second = sandbox(
            *("--json", "--workspace", record["digest"], *words),
            folder=elsewhere,
            variables=platform(port),
        )
        assert json.loads(second.stdout)["stdout"] == "1\n100000\n", second.stderr
        assert json.loads(second.stdout)["workspace"]["digest"] == record["digest"]


@pytest.mark.s3
def test_digest_that_nobody_has_is_bad_input(tmp_path: Path) -> None:
    with s3_server(tmp_path, port := free_port()):
        done = sandbox(
            *("--workspace", "0" * 64, "--", "true"), folder=tmp_path, variables=platform(port)
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"workspace {'0' * 64} is not in the store" in done.stderr
    assert "Traceback" not in done.stderr


def test_digest_without_a_platform_is_bad_input(tmp_path: Path) -> None:
    done = sandbox("--workspace", "0" * 64, "--", "true", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no platform runs in .loopwright" in done.stderr


def test_store_that_is_down_fails_a_run_that_needs_it(tmp_path: Path) -> None:
    done = sandbox(
        *("--workspace", "0" * 64, "--", "true"), folder=tmp_path, variables=platform(free_port())
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "S3" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.nsjail
@needs_jails
def test_store_that_is_down_does_not_take_the_result_of_a_run_away(tmp_path: Path) -> None:
    done = sandbox("--json", "--", "true", folder=tmp_path, variables=platform(free_port()))
    assert done.returncode == 0
    assert not json.loads(done.stdout)["workspace"]["is_kept"]
    assert "is not kept" in done.stderr


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


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--workspace", "", "expected a path or digest, got nothing"),
        ("--root", "", "expected a name or digest, got nothing"),
        ("--packages", "", "expected a name or digest, got nothing"),
        ("--stdin", "", "expected a path, got nothing"),
        ("--strict", "18446744073709551616", "equal to 18446744073709551615, got"),
    ],
)
def test_option_that_cannot_be_is_bad_usage(option: str, value: str, expected: str) -> None:
    done = sandbox(option, value, "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"'{option}'" in done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_standard_input_without_end_is_bad_usage() -> None:
    done = sandbox("--stdin", "/dev/zero", "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--stdin: /dev/zero holds more than 256M" in done.stderr


@pytest.mark.nsjail
@needs_jails
def test_strict_runs_are_equal_and_loopback_is_the_jails_own() -> None:
    code = "import random, socket, time; print(random.random(), time.time())"
    server = "; print(socket.create_server(('127.0.0.1', 8000)).getsockname())"
    words = ("--strict", "7", "--loopback", "--", "python3", "-c", code + server)
    first, second = sandbox(*words), sandbox(*words)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert first.stdout.endswith("('127.0.0.1', 8000)\n")
