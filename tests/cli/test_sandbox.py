"""The command ``loopwright sandbox run``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_all_problems_are_named_at_once() -> None:
    done = sandbox(
        "--limits", "wall=0,cores=2,pids=3K,disk=1,cpu", "--workspace", "/no", "--", "true"
    )
    assert done.returncode == 2
    for problem in ("wall", "'cores'", "pids", "disk", "cpu", "'/no'"):
        assert problem in done.stderr
    assert "Traceback" not in done.stderr
