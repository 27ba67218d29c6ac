"""One supervisor a state folder, and Ctrl-C in its own terminal."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopwright.contracts.failures import UserError
from loopwright.embedded.child import Child
from loopwright.embedded.info import ChildState, StackInfo
from loopwright.embedded.locks import hold, is_held
from loopwright.embedded.plan import RestartPolicy
from loopwright.embedded.processes import identify, kill_session
from loopwright.embedded.state_folder import StateFolder
from tests.embedded.children import child, plan

FOREGROUND = """
import sys
import time
from pathlib import Path
from loopwright.embedded.plan import Plan
from loopwright.embedded.supervision import supervise
plan = Plan.model_validate_json(sys.argv[1])
supervise(plan, on_change=lambda info: print(info.state, flush=True))
"""


def test_interrupt_in_the_foreground_stops_everything(tmp_path: Path) -> None:
    content = plan(tmp_path, child(tmp_path, "one")).model_dump_json()
    process = subprocess.Popen(
        [sys.executable, "-c", FOREGROUND, content], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert "running\n" in iter(process.stdout.readline, "")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    info = StackInfo.load(tmp_path)
    assert info
    assert info.children["one"].state is ChildState.STOPPED


def test_lock_has_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold(path, seconds=0, busy="taken"):
        assert is_held(path)
        with pytest.raises(UserError, match="taken"), hold(path, seconds=0, busy="taken"):
            pass
    assert not is_held(path)


def test_pause_doubles_up_to_its_limit() -> None:
    policy = RestartPolicy(first_seconds=0.5, max_seconds=10)
    assert [policy.pause_seconds(number) for number in range(1, 8)] == [0.5, 1, 2, 4, 8, 10, 10]


def test_what_ran_well_for_ten_seconds_starts_again_at_once(tmp_path: Path) -> None:
    folder, policy = StateFolder(tmp_path), RestartPolicy()
    folder.make()
    one, now = Child(child(tmp_path, "one"), folder, policy), 0.0
    for _ in range(5):
        assert one.is_due(now)
        one.start(now)
        while one.state is not ChildState.HEALTHY:
            time.sleep(0.02)
            now += 0.25  # as the other steps, without rounding
            one.watch(now)
        now += 10
        one.kill()
        while one.is_running:
            one.watch(now)
        now += policy.first_seconds
    assert one.failures == 1


def test_reused_process_id_is_left_alone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    now = identify(process.pid)
    assert now
    earlier = now.model_copy(update={"start_ticks": now.start_ticks - 1})
    assert kill_session(earlier) == 0
    assert process.poll() is None
    process.kill()
    process.wait()


def test_session_is_killed_after_its_leader_has_gone() -> None:
    process = subprocess.Popen(
        ["sh", "-c", "sleep 600 & echo $!; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    leader = identify(process.pid)
    assert leader
    assert process.stdout
    assert process.stdin
    orphan = int(process.stdout.readline())
    process.stdin.close()
    process.wait()
    assert kill_session(leader) == 1
    assert identify(orphan) is None


def test_unreadable_status_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stack.json").write_text("{")
    with pytest.raises(UserError, match=r"stack\.json is not a status file"):
        StackInfo.load(tmp_path)
