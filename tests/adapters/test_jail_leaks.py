"""What jails leave behind: after many runs that end badly, and after their makers were killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import MIB, PYTHON, CommandRequest, Limits, Strict, Workspace
from tests.adapters.host_state import HostState, host_state
from tests.adapters.jails import COLD_PYTHON, left_on_host, needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]

NUM_RUNS = int(os.environ.get("LOOPWRIGHT_TEST_NUM_RUNS", "300"))
"""More by hand, for a longer look."""
LIMITS = Limits(wall_seconds=10, memory_bytes=48 * MIB, drain_bytes=MIB)
SHORT = LIMITS.model_copy(update={"wall_seconds": 0.1})
GIVEN = Workspace.of({"a": b"1", "b/c": b"2"})


def program(code: str, limits: Limits = LIMITS, *, is_warm: bool = True) -> CommandRequest:
    """Ask for a program."""
    return CommandRequest(argv=(*(PYTHON if is_warm else COLD_PYTHON), "-c", code), limits=limits)


TRUE = CommandRequest(argv=("/bin/true",))
MIXED = (
    TRUE,
    program("pass"),
    program("pass", is_warm=False),
    program("import time; time.sleep(60)", SHORT),
    program("x = bytearray(1 << 30)"),
    program("import os\nwhile True: os.write(1, bytes(65536))"),
    program("import os; os.abort()"),
    program(
        "import os, time\nfor _ in range(5):\n  if os.fork() == 0: os.setsid(); time.sleep(60)"
    ),
    program("open('/tmp/x', 'wb').write(bytes(1 << 20)); open('y', 'w').write('y')"),
    program("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", SHORT),
    CommandRequest(argv=("/no/such",)),
    CommandRequest(argv=("/bin/cat",), stdin=bytes(200_000)),
    CommandRequest(argv=("/bin/true",), has_loopback=True),
    CommandRequest(argv=("/bin/true",), strict=Strict(seed=3)),
    CommandRequest(argv=("/bin/true",), limits=Limits(disk_bytes=2 * MIB)),
)


@pytest.fixture(params=["native", "nsjail"])
def launcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_many_runs_of_all_kinds_leave_nothing(launcher: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with LocalJail(root, num_slots=2, launcher=launcher) as jail:

        def run(index: int) -> bool:
            done = jail.run(GIVEN, MIXED[index % len(MIXED)])
            return done.result.wall_seconds >= 0

        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(run, range(2 * len(MIXED))))
        before, memory_before = state_at_rest(jail, root), resident_bytes()
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(run, range(NUM_RUNS)))
        assert host_state(jail, root) == before
        assert resident_bytes() < memory_before + 16 * MIB
    assert not root.exists()


def test_launcher_killed_while_its_jail_waits_is_replaced(launcher: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with LocalJail(root, num_slots=1, launcher=launcher) as jail:
        before = state_at_rest(jail, root)
        assert jail.run(GIVEN, TRUE).result.exit_code == 0
        jail._house.slots[0].process.wait_until_ready()
        kill_launcher(jail)
        with suppress(SandboxUnavailable):  # unless the command was faster
            jail.run(GIVEN, TRUE)
        assert state_at_rest(jail, root) == before


def test_launcher_killed_while_idle_is_replaced(launcher: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with LocalJail(root, num_slots=1, launcher=launcher) as jail:
        before = state_at_rest(jail, root)
        kill_launcher(jail)
        with suppress(SandboxUnavailable):  # unless the command was faster
            jail.run(GIVEN, TRUE)
        assert state_at_rest(jail, root) == before


def test_launcher_killed_while_a_command_runs_is_replaced(launcher: str, tmp_path: Path) -> None:
    root, mark = tmp_path / "root", ("/bin/sleep", str(7_000_000 + os.getpid()))
    with (
        LocalJail(root, num_slots=1, launcher=launcher) as jail,
        ThreadPoolExecutor(1) as threads,
    ):
        before = state_at_rest(jail, root)
        running = threads.submit(jail.run, GIVEN, CommandRequest(argv=mark))
        wait_until(lambda: left_on_host(*mark) != [])
        kill_launcher(jail)
        with pytest.raises(SandboxUnavailable):
            running.result()
        threads.shutdown()
        assert left_on_host(*mark) == []
        assert state_at_rest(jail, root) == before


def test_killed_supervisor_takes_launchers_and_jails_with_it(launcher: str, tmp_path: Path) -> None:
    root, mark = tmp_path / "root", ("/bin/sleep", str(8_000_000 + os.getpid()))
    code = (
        "import sys, threading\nfrom pathlib import Path\n"
        "from loopwright.adapters.local_jail import LocalJail\n"
        "from loopwright.contracts.workspaces import CommandRequest, Limits, Workspace\n"
        "limits = Limits(wall_seconds=600)\n"
        "with LocalJail(Path(sys.argv[1]), num_slots=2, launcher=sys.argv[2]) as jail:\n"
        "    jail.run(Workspace(), CommandRequest(argv=('/bin/true',)))\n"
        "    jail.run(Workspace(), CommandRequest(argv=tuple(sys.argv[3:]), limits=limits))\n"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", code, str(root), launcher, *mark])
    wait_until(lambda: left_on_host(*mark) != [])
    binary = str(next(root.iterdir()) / "launcher")
    assert left_on_host(binary) != []
    supervisor.kill()
    supervisor.wait()
    wait_until(lambda: left_on_host(*mark) == [] and left_on_host(binary) == [])
    with LocalJail(root, num_slots=1, launcher=launcher) as jail:
        assert jail.run(GIVEN, TRUE).result.exit_code == 0
        assert len(list(root.iterdir())) == 1
        assert not list(Path("/sys/fs/cgroup").glob(f"*/loopwright/*.{supervisor.pid}.*"))
    assert str(root) not in Path("/proc/mounts").read_text()
    assert not list(root.iterdir())


def state_at_rest(jail: LocalJail, root: Path) -> HostState:
    """Run an honest command; say what is there once the host has reaped what lost its parent."""
    assert jail.run(GIVEN, TRUE).result.exit_code == 0
    wait_until(lambda: host_state(jail, root).processes == 0)
    return host_state(jail, root)


def kill_launcher(jail: LocalJail) -> None:
    pid = jail._house.slots[0].process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to be")
