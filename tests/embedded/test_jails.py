"""What jails leave on the host, and who takes it away."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loopwright.adapters.cgroups import find_hierarchies
from loopwright.adapters.jail_roots import clear, jail_root
from loopwright.adapters.mounts import mounts_below
from loopwright.embedded.stack import Stack
from loopwright.embedded.state_folder import StateFolder
from tests.adapters.jails import needs_jails
from tests.embedded.children import SLEEP, child, plan
from tests.embedded.test_stack import wait_until

pytestmark = [pytest.mark.nsjail, needs_jails]

HOLD_A_JAIL = """
import os, sys, time
from pathlib import Path
from loopwright.adapters.jail_roots import jail_root
from loopwright.adapters.local_jail import LocalJail
with LocalJail(jail_root(Path({state!r})), num_slots=1):
    Path(sys.argv[1]).write_text(str(os.getpid()))
    time.sleep(600)
"""
"""Has a jail, as a worker has it, and says so in the file that is its argument."""


@contextmanager
def owner(state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Have a process with a jail that no supervisor knows."""
    ready = state / "ready"
    command = [sys.executable, "-c", HOLD_A_JAIL.format(state=str(state)), str(ready)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        wait_until(lambda: ready.exists() or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.wait()
        clear(jail_root(state))


@contextmanager
def platform(state: Path, code: str = SLEEP) -> Iterator[Stack]:
    """Have a platform of one process."""
    stack = Stack(state, make_plan=lambda: plan(state, child(state, "one", code)))
    try:
        stack.ensure_running()
        yield stack
    finally:
        stack.stop()


def groups_of(root: Path) -> list[Path]:
    """List the control groups of the jails below a root."""
    parents = [folder.parent for folder in find_hierarchies().folders("x")]
    owners = [folder.name for folder in root.iterdir()]
    return [group for parent in parents for name in owners for group in parent.glob(f"*.{name}-*")]


def test_down_takes_away_what_a_killed_owner_left(tmp_path: Path) -> None:
    StateFolder(tmp_path).make()
    root = jail_root(tmp_path)
    with owner(tmp_path) as process:
        groups = groups_of(root)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert mounts_below(root)
        assert groups
        assert all(group.exists() for group in groups)
        Stack(tmp_path).stop()
        assert not mounts_below(root)
        assert not any(group.exists() for group in groups)
        assert not root.exists()


def test_down_leaves_a_living_owner_alone(tmp_path: Path) -> None:
    StateFolder(tmp_path).make()
    root = jail_root(tmp_path)
    with owner(tmp_path) as process:
        before = mounts_below(root), groups_of(root)
        Stack(tmp_path).stop()
        assert (mounts_below(root), groups_of(root)) == before
        assert process.poll() is None


def test_killed_supervisor_leaves_no_jails(tmp_path: Path) -> None:
    root = jail_root(tmp_path)
    with platform(tmp_path, HOLD_A_JAIL.format(state=str(tmp_path))) as stack:
        assert mounts_below(root)
        info = stack.info()
        assert info is not None
        os.kill(info.supervisor.pid, signal.SIGKILL)
        wait_until(lambda: not stack.is_running())
        assert not mounts_below(root)
        assert not root.exists()


def test_stopped_platform_leaves_no_empty_folder(tmp_path: Path) -> None:
    root = jail_root(tmp_path)
    root.mkdir(parents=True)
    with platform(tmp_path):
        pass
    assert not root.exists()
