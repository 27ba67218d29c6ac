"""A timeout of the host's making is told from one of the program's."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.starvation import is_starved
from loopwright.contracts.workspaces import CommandRequest, CommandResult, Limits, Workspace
from tests.adapters.jails import COLD_PYTHON, needs_jails

SPIN = "while True: pass"
CROWD = "import os\nfor _ in range(4): os.fork()\n" + SPIN


@pytest.fixture
def crowd() -> Iterator[None]:
    """Keep every processor busy, by whatever the kernel shares it: priorities, or sessions."""
    command = ("/bin/sh", "-c", "while :; do :; done")
    spinners = []
    for cpu in sorted(os.sched_getaffinity(0)) * 8:
        spinner = subprocess.Popen(command, start_new_session=True)
        os.sched_setaffinity(spinner.pid, {cpu})
        os.setpriority(os.PRIO_PROCESS, spinner.pid, -20)
        spinners.append(spinner)
    yield
    for spinner in spinners:
        spinner.kill()
        spinner.wait()


def run(root: Path, code: str) -> CommandResult:
    limits = Limits(wall_seconds=1.0)
    with LocalJail(root, num_slots=1) as jail:
        request = CommandRequest(argv=(*COLD_PYTHON, "-c", code), limits=limits)
        return jail.run(Workspace(), request).result


@pytest.mark.nsjail
@needs_jails
def test_program_that_the_host_starves_is_suspect(tmp_path: Path, crowd: None) -> None:
    result = run(tmp_path / "root", SPIN)
    assert result.timed_out
    assert result.is_suspect


@pytest.mark.nsjail
@needs_jails
def test_program_that_sleeps_is_not(tmp_path: Path) -> None:
    result = run(tmp_path / "root", "import time; time.sleep(60)")
    assert (result.timed_out, result.is_suspect) == (True, False)


@pytest.mark.nsjail
@needs_jails
@pytest.mark.parametrize("code", [SPIN, CROWD], ids=["spin", "crowd"])
def test_program_that_has_its_processor_and_wants_more_is_not(tmp_path: Path, code: str) -> None:
    result = run(tmp_path / "root", code)
    had_its_processor = result.cpu_seconds > 0.5 * result.wall_seconds
    assert result.is_suspect is not had_its_processor


def test_process_that_is_gone_was_not_starved() -> None:
    assert not is_starved([2**22 + 1], cpu_seconds=0.0, wall_seconds=1.0)
