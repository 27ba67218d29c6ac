"""The supervisor as a process of its own, with small real children."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loopwright.contracts.failures import LoopError
from loopwright.embedded.info import ChildState, StackInfo
from loopwright.embedded.plan import ChildSpec
from loopwright.embedded.processes import is_alive
from loopwright.embedded.stack import Stack
from loopwright.embedded.state_folder import StateFolder
from tests.embedded.children import SLEEP, WITH_CHILD, child, plan

MakeStack = Callable[..., Stack]


@pytest.fixture
def make_stack(tmp_path: Path) -> Iterator[MakeStack]:
    """Make stacks of the test's folder; none outlives the test."""

    def make(*children: ChildSpec) -> Stack:
        return Stack(tmp_path, make_plan=lambda: plan(tmp_path, *children))

    yield make
    make().stop()


def wait_until(is_so: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def load(state: Path) -> StackInfo:
    info = StackInfo.load(state)
    assert info is not None
    return info


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_started_platform_is_healthy_and_stops_whole(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = make_stack(child(tmp_path, "one"), child(tmp_path, "two"))
    info = stack.ensure_running()
    assert info.is_healthy
    assert stack.stop()
    assert not any(runs(found.pid) for found in info.children.values() if found.pid)
    assert not runs(info.supervisor.pid)
    assert not stack.is_running()


def test_children_start_in_order_of_need_and_stop_in_reverse(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    lines: list[str] = []
    late = child(tmp_path, "worker", needs=("server",), stage=1)
    stack = make_stack(late, child(tmp_path, "server"))
    stack.ensure_running(lines.append)
    stack.stop(lines.append)
    assert lines.index("server: ready") < lines.index("worker: ready")
    log = StateFolder(tmp_path).log("supervisor").read_text()
    assert log.index("server: healthy") < log.index("worker: started")
    assert log.index("worker: stopping") < log.index("server: stopping")


def test_crashed_child_is_started_again(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = make_stack(child(tmp_path, "one"), child(tmp_path, "two"))
    before = stack.ensure_running().children
    assert before["one"].pid
    os.kill(before["one"].pid, signal.SIGKILL)
    wait_until(lambda: load(tmp_path).children["one"].restarts == 1 and load(tmp_path).is_healthy)
    after = load(tmp_path).children
    assert after["one"].last_exit == "SIGKILL"
    assert after["one"].pid != before["one"].pid
    assert after["two"] == before["two"]


def test_restart_ends_what_the_crashed_child_had_started(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    info = make_stack(child(tmp_path, "one", WITH_CHILD)).ensure_running()
    grandchild = int(info.children["one"].log.read_text())
    assert runs(grandchild)
    os.kill(info.children["one"].pid or 0, signal.SIGKILL)
    wait_until(lambda: not runs(grandchild))


def test_killed_supervisor_leaves_nothing_running(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = make_stack(child(tmp_path, "one", WITH_CHILD), child(tmp_path, "two"))
    info = stack.ensure_running()
    pids = [found.pid for found in info.children.values() if found.pid]
    pids.append(int(info.children["one"].log.read_text()))
    os.kill(info.supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not any(runs(pid) for pid in pids))
    wait_until(lambda: not stack.is_running())


def test_killed_supervisor_is_replaced_by_the_next_start(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    stack = make_stack(child(tmp_path, "one"))
    before = stack.ensure_running()
    os.kill(before.supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(before.supervisor))
    after = stack.ensure_running()
    assert after.is_healthy
    assert after.supervisor != before.supervisor


def test_removing_the_state_folder_stops_everything(make_stack: MakeStack, tmp_path: Path) -> None:
    info = make_stack(child(tmp_path, "one"), child(tmp_path, "two")).ensure_running()
    shutil.rmtree(tmp_path / "run")
    wait_until(lambda: not is_alive(info.supervisor))
    wait_until(lambda: not any(runs(each.pid) for each in info.children.values() if each.pid))


def test_second_start_joins_the_running_platform(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = make_stack(child(tmp_path, "one"))
    assert stack.ensure_running() == stack.ensure_running()


def test_child_that_never_starts_fails_the_start_with_its_log(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    broken = child(tmp_path, "broken", "raise SystemExit('no such device')")
    stack = make_stack(child(tmp_path, "fine"), broken)
    with pytest.raises(LoopError, match=r"broken did not start: 5 attempts(.|\n)*no such device"):
        stack.ensure_running()
    assert not stack.is_running()
    assert load(tmp_path).children["fine"].state is ChildState.STOPPED


def test_program_that_is_missing_fails_the_start(make_stack: MakeStack, tmp_path: Path) -> None:
    absent = child(tmp_path, "absent", command=("/nowhere/program",))
    with pytest.raises(LoopError, match="absent cannot be started"):
        make_stack(absent).ensure_running()


def test_child_that_ignores_sigterm_is_killed(make_stack: MakeStack, tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEP
    stack = make_stack(child(tmp_path, "deaf", deaf, grace_seconds=0.2))
    info = stack.ensure_running()
    stack.stop()
    assert not runs(info.children["deaf"].pid or 0)


def test_child_without_health_is_killed_and_started_again(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    # The first attempt never says that it is ready.
    code = (
        "import os, sys, time\n"
        "first = not os.path.exists('tried')\n"
        "open('tried', 'w').close()\n"
        "if first: time.sleep(600)\n" + SLEEP
    )
    info = make_stack(child(tmp_path, "slow", code, start_seconds=1.0)).ensure_running()
    assert info.children["slow"].restarts == 1


def test_logs_of_the_last_start_are_kept(make_stack: MakeStack, tmp_path: Path) -> None:
    speaking = child(tmp_path, "one", "print('hello', flush=True)\n" + SLEEP)
    for _ in range(2):
        make_stack(speaking).ensure_running()
        make_stack().stop()
    logs = StateFolder(tmp_path).logs
    assert (logs / "one.log").read_text() == "hello\n"
    assert (logs / "one.log.1").read_text() == "hello\n"


def test_status_file_is_its_owners_only(make_stack: MakeStack, tmp_path: Path) -> None:
    make_stack(child(tmp_path, "one")).ensure_running()
    folder = StateFolder(tmp_path)
    assert folder.info.stat().st_mode & 0o077 == 0
    assert folder.plan.stat().st_mode & 0o077 == 0


def test_stopping_what_does_not_run_is_no_error(tmp_path: Path) -> None:
    assert not Stack(tmp_path / "nothing").stop()
    assert not (tmp_path / "nothing").exists()
