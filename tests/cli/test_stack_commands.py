"""The commands for the platform on this machine, as a shell calls them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.embedded.stack import Stack
from tests.embedded.children import child, plan


def loopwright(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loopwright.cli", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Stack]:
    """Run a platform of one small process."""
    state = tmp_path / ".loopwright"
    stack = Stack(state, make_plan=lambda: plan(state, child(state, "one")))
    stack.ensure_running()
    yield stack
    stack.stop()


def test_status_of_nothing_says_so_and_fails(tmp_path: Path) -> None:
    done = loopwright("status", cwd=tmp_path)
    assert done.returncode == 1
    assert "not running" in done.stdout
    assert not list(tmp_path.iterdir())


def test_status_of_nothing_as_json(tmp_path: Path) -> None:
    done = loopwright("status", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["state"] == "not_running"


def test_command_whose_output_was_closed_ends_by_its_result(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loopwright.cli", "down"]
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *command], cwd=tmp_path, stderr=subprocess.PIPE
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_down_of_nothing_succeeds(tmp_path: Path) -> None:
    done = loopwright("down", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["was_running"] is False


@pytest.mark.usefixtures("running")
def test_status_shows_processes_and_no_keys(tmp_path: Path) -> None:
    done = loopwright("status", "--json", cwd=tmp_path)
    status = json.loads(done.stdout)
    assert done.returncode == 0
    assert status["is_healthy"]
    assert status["children"]["one"]["pid"] > 0
    assert "secret" not in done.stdout
    assert "healthy" in loopwright("status", cwd=tmp_path).stdout


def test_down_stops_what_runs(running: Stack, tmp_path: Path) -> None:
    done = loopwright("down", cwd=tmp_path)
    assert done.returncode == 0
    assert "one: stopped" in done.stdout
    assert not running.is_running()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--model", "nowhere"), "model: there is no directory 'nowhere'"),
        (("--engine-port", "0"), "--engine-port 0: expected a port from 1 to 65535"),
        (("--state", "/dev/null"), "/dev/null is no writable folder"),
        (("--state", "a" * 300), "'--state': File name too long"),
        (("--model", "a" * 300), "cannot be read: File name too long"),
        (("--slots", "0"), "--slots"),
    ],
)
def test_up_refuses_bad_input(tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    done = loopwright("up", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("running")
def test_up_refuses_other_ports_than_those_running(tmp_path: Path) -> None:
    done = loopwright("up", "--s3-port", "4321", cwd=tmp_path)
    assert done.returncode == 2
    assert "--s3-port 4321: the platform in" in done.stderr


@pytest.mark.usefixtures("running")
def test_up_refuses_another_model_than_the_one_served(tmp_path: Path) -> None:
    done = loopwright("up", "--model", "other", cwd=tmp_path)
    assert done.returncode == 2
    assert "--model other: the platform in" in done.stderr


@pytest.mark.usefixtures("running")
def test_start_refuses_an_engine_that_the_platform_lacks(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text("engines:\n  - name: fats\n")
    done = loopwright("start", "loop.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "loop.yaml:2: engines[0].name: expected an engine of the platform (main)" in done.stderr
    assert "got 'fats'" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_names_what_is_missing(tmp_path: Path) -> None:
    done = loopwright("doctor", "--json", "--model", "nowhere", cwd=tmp_path)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert not checks["model"]["is_ok"]
    assert checks["model"]["advice"]
    assert checks["temporal"]["is_ok"]
