"""The jail, with real programs that exceed limits, lie about their end, and reach out."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.failures import SandboxUnavailable, TaskError
from loopwright.contracts.workspaces import (
    MIB,
    PYTHON,
    CommandRequest,
    CommandResult,
    Limits,
    Workspace,
)
from tests.adapters.jails import COLD_PYTHON, RUN, left_on_host, needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]


@pytest.fixture(scope="module", params=["native", "nsjail"])
def jail(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalJail]:
    root = tmp_path_factory.mktemp("jails") / "root"
    with LocalJail(root, num_slots=2, launcher=request.param) as opened:
        yield opened


@pytest.fixture(params=[COLD_PYTHON, PYTHON], ids=["cold", "warm"])
def run(jail: LocalJail, request: pytest.FixtureRequest) -> RUN:
    """Run a Python program and give its result."""
    python = request.param

    def run_program(code: str, **fields: object) -> CommandResult:
        request = CommandRequest.model_validate({"argv": (*python, "-c", code), **fields})
        return jail.run(Workspace(), request).result

    return run_program


def test_program_gets_its_workspace_stdin_and_environment(jail: LocalJail) -> None:
    code = "import os, sys; print(open('in').read(), sys.stdin.read(), os.environ['WORD'])"
    request = CommandRequest(argv=(*PYTHON, "-c", code), stdin=b"b" * 300_000, env={"WORD": "c d"})
    result = jail.run(Workspace.of({"in": b"a"}), request).result
    assert result.exit_code == 0
    assert result.stdout == b"a " + b"b" * (64 * 1024 - 2)
    assert result.stdout_truncated


def test_workspace_comes_back_changed_and_the_given_one_stays(jail: LocalJail) -> None:
    given = Workspace.of({"a/old": b"1", "gone": b"2"})
    command = "echo new > a/new; rm gone; chmod +x a/old; mkdir empty"
    done = jail.run(given, CommandRequest(argv=("/bin/sh", "-c", command)))
    found = {file.path: (file.data, file.executable) for file in done.workspace.files}
    kept = {"a/new": (b"new\n", False), "a/old": (b"1", True), "empty": (None, False)}
    assert found == kept
    assert [file.path for file in given.files] == ["a/old", "gone"]


def test_workspace_is_not_read_back_when_nobody_wants_it(jail: LocalJail) -> None:
    given = Workspace.of({"a": b"1"})
    done = jail.run(given, CommandRequest(argv=("/bin/rm", "a"), collect=False))
    assert done.result.exit_code == 0
    assert done.workspace is given


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "", "a//b", "./a", "a\0b"])
def test_unsafe_path_in_a_workspace_is_refused(jail: LocalJail, path: str) -> None:
    with pytest.raises(TaskError, match="workspace path"):
        jail.run(Workspace.of({path: b""}), CommandRequest(argv=("/bin/true",)))


def test_workspace_larger_than_its_disk_is_refused(jail: LocalJail) -> None:
    request = CommandRequest(argv=("/bin/true",), limits=Limits(disk_bytes=MIB))
    with pytest.raises(TaskError, match=r"big.*No space left"):
        jail.run(Workspace.of({"big": bytes(2 * MIB)}), request)


@pytest.mark.parametrize("code", [0, 1, 125, 137, 255])
def test_exit_code_is_reported_as_it_is(run: RUN, code: int) -> None:
    result = run(f"import os; os._exit({code})")
    assert (result.exit_code, result.signal) == (code, None)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGABRT", "SIGTERM", "SIGSEGV"])
def test_signal_is_reported_as_it_is(run: RUN, name: str) -> None:
    number = signal.Signals[name]
    result = run(f"import os; os.kill(os.getpid(), {int(number)})")
    assert (result.exit_code, result.signal) == (None, number)
    assert (result.oom, result.timed_out, result.output_limit) == (False, False, False)


def test_missing_program_and_one_that_is_none_end_as_in_a_shell(jail: LocalJail) -> None:
    missing = jail.run(Workspace(), CommandRequest(argv=("no-such-program",))).result
    assert missing.exit_code == 127
    assert b"no-such-program" in missing.stderr
    given = Workspace.of({"text": b"hello"})
    assert jail.run(given, CommandRequest(argv=("./text",))).result.exit_code == 126


def test_sleeping_program_is_timed_out(run: RUN) -> None:
    result = run("import time; time.sleep(60)", limits=Limits(wall_seconds=0.5))
    assert result.timed_out
    assert (result.exit_code, result.signal) == (None, None)
    assert result.wall_seconds >= 0.5


def test_spinning_program_is_timed_out_by_its_cpu_time(run: RUN) -> None:
    result = run("while True: pass", limits=Limits(cpu_seconds=1))
    assert result.timed_out
    assert (result.exit_code, result.signal) == (None, None)


def test_program_that_ignores_the_end_of_its_cpu_time_is_timed_out(run: RUN) -> None:
    code = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert run(code, limits=Limits(cpu_seconds=1)).timed_out


def test_program_that_takes_too_much_memory_is_out_of_memory(run: RUN) -> None:
    result = run("bytearray(1 << 30)", limits=Limits(memory_bytes=64 * MIB))
    assert (result.oom, result.num_oom_kills, result.exit_code) == (True, 1, None)
    assert result.peak_memory_bytes <= 64 * MIB


def test_child_that_takes_too_much_memory_is_counted_and_the_program_ends_as_it_does(
    run: RUN,
) -> None:
    child = "if os.fork() == 0: bytearray(1 << 30)\nprint(os.wait()[1], flush=True)\n"
    code = f"import os\n{child}{child}os._exit(%d)"
    for exit_code in (0, 3):
        result = run(code % exit_code, limits=Limits(memory_bytes=64 * MIB))
        assert (result.exit_code, result.oom, result.num_oom_kills) == (exit_code, False, 2)
        assert result.stdout == b"9\n9\n"


def test_shell_whose_command_takes_too_much_memory_says_so_itself(jail: LocalJail) -> None:
    command = "/usr/bin/python3 -c 'bytearray(1 << 30)'; exit $?"
    limits = Limits(memory_bytes=64 * MIB)
    result = jail.run(
        Workspace(), CommandRequest(argv=("/bin/sh", "-c", command), limits=limits)
    ).result
    assert (result.exit_code, result.oom, result.num_oom_kills) == (137, False, 1)


def test_program_that_waits_for_ever_for_a_killed_child_is_timed_out_and_both_are_told(
    run: RUN,
) -> None:
    code = "import os, time\nif os.fork() == 0: bytearray(1 << 30)\ntime.sleep(60)"
    result = run(code, limits=Limits(memory_bytes=64 * MIB, wall_seconds=1.5))
    assert (result.timed_out, result.oom, result.num_oom_kills) == (True, False, 1)


def test_files_count_as_memory(run: RUN) -> None:
    code = "open('big', 'wb').write(bytes(48 << 20))"
    assert run(code, limits=Limits(memory_bytes=32 * MIB)).oom


def test_full_disk_is_an_error_inside(run: RUN) -> None:
    code = "for i in range(9): open(f'f{i}', 'wb').write(bytes(1 << 20))"
    result = run(code, limits=Limits(disk_bytes=4 * MIB))
    assert result.exit_code == 1
    assert b"No space left on device" in result.stderr


def test_flood_of_output_is_ended_and_cut(run: RUN) -> None:
    limits = Limits(output_bytes=1000, drain_bytes=MIB)
    result = run("while True: print('x' * 1000)", limits=limits)
    assert result.output_limit
    assert result.stdout == (b"x" * 1000)


def test_fork_bomb_is_bounded(run: RUN) -> None:
    code = (
        "import os, time\ncount = 1\n"
        "try:\n  while True:\n    if os.fork() == 0: time.sleep(60)\n    count += 1\n"
        "except OSError: print(count)"
    )
    assert run(code, limits=Limits(max_processes=10)).stdout == b"10\n"


def test_daemon_does_not_outlive_its_run(run: RUN) -> None:
    code = (
        "import os, signal, time\n"
        "for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(3600)"
    )
    assert run(code).exit_code == 0
    assert left_on_host("python3", "3600") == []


def test_host_is_not_visible(run: RUN, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_SECRET", "hidden")
    code = (
        "import os\n"
        "print(os.path.exists('/etc/shadow'), os.path.exists('/root'), os.path.exists('/home'))\n"
        "print('HOST_SECRET' in os.environ, os.getuid(), os.getpid(), os.uname().nodename)\n"
        "print(sorted(os.listdir('/proc/self/fd')))"
    )
    lines = run(code).stdout.split(b"\n")
    assert lines[0] == b"False False False"
    assert lines[1] == b"False 1000 2 jail"
    assert lines[2] == b"['0', '1', '2', '3']"


@pytest.mark.parametrize("path", ["/x", "/usr/x", "/etc/passwd", "/jinit", "/dev/x"])
def test_nothing_outside_can_be_written(run: RUN, path: str) -> None:
    assert run(f"open({path!r}, 'w')").exit_code == 1


def test_listener_of_the_host_cannot_be_reached(run: RUN) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = run(f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)")
    assert result.exit_code == 1
    assert b"OSError" in result.stderr or b"Error" in result.stderr


@pytest.mark.parametrize("call", ["unshare(0x10000000)", "ptrace(0, 0, 0, 0)", "mount(0, 0, 0, 0)"])
def test_dangerous_system_call_is_refused(run: RUN, call: str) -> None:
    code = (
        f"import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.{call}, ctypes.get_errno())"
    )
    assert run(code).stdout == b"-1 1\n"


def test_report_of_process_1_cannot_be_written_by_the_program(run: RUN) -> None:
    code = (
        "import os\n"
        "for fd in range(3, 64):\n"
        "  for path in (f'/proc/1/fd/{fd}', f'/proc/self/fd/{fd}'):\n"
        "    try: os.write(os.open(path, os.O_WRONLY), b'exit 0 1\\n')\n"
        "    except OSError: pass\n"
        "os._exit(3)"
    )
    assert run(code).exit_code == 3


def test_own_output_can_be_opened_again(run: RUN) -> None:
    assert run("open('/dev/stdout', 'w').write('again')").stdout == b"again"


def test_more_runs_than_slots_wait_for_their_turn(jail: LocalJail) -> None:
    def run_one(index: int) -> bytes:
        request = CommandRequest(argv=("/bin/cat",), stdin=b"%d" % index)
        return jail.run(Workspace(), request).result.stdout

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(run_one, range(12))) == [b"%d" % index for index in range(12)]


def test_closing_ends_what_still_runs(tmp_path: Path) -> None:
    request = CommandRequest(argv=("/bin/sleep", "1234"), limits=Limits(wall_seconds=600))
    with ThreadPoolExecutor(1) as threads:
        with LocalJail(tmp_path / "root", num_slots=1) as jail:
            running = threads.submit(jail.run, Workspace(), request)
            _wait_until(lambda: left_on_host("/bin/sleep", "1234") != [])
        with pytest.raises(SandboxUnavailable, match="closed"):
            running.result()
    assert left_on_host("/bin/sleep", "1234") == []
    assert not (tmp_path / "root").exists()


def test_killed_worker_leaves_nothing_that_its_successor_does_not_clear(tmp_path: Path) -> None:
    root = tmp_path / "root"
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from loopwright.adapters.local_jail import LocalJail\n"
        "from loopwright.contracts.workspaces import CommandRequest, Workspace\n"
        "with LocalJail(Path(sys.argv[1]), num_slots=1) as jail:\n"
        "    jail.run(Workspace(), CommandRequest(argv=('/bin/sleep', '4321')))\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, str(root)])
    _wait_until(lambda: left_on_host("/bin/sleep", "4321") != [])
    worker.kill()
    worker.wait()
    _wait_until(lambda: left_on_host("/bin/sleep", "4321") == [])
    assert str(root) in Path("/proc/mounts").read_text()
    with LocalJail(root, num_slots=1) as jail:
        assert jail.run(Workspace(), CommandRequest(argv=("/bin/true",))).result.exit_code == 0
        assert [path.name for path in root.iterdir()] == [f"{os.getpid()}.{_last_instance(root)}"]
    assert str(root) not in Path("/proc/mounts").read_text()


def test_two_owners_share_a_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    uid = CommandRequest(argv=("/usr/bin/stat", "-c", "%u", "/workspace"))
    with LocalJail(root, num_slots=1) as first, LocalJail(root, num_slots=1) as second:
        assert first.run(Workspace(), uid).result.stdout == b"1000\n"
        assert second.run(Workspace(), uid).result.stdout == b"1000\n"
    assert not root.exists()


def test_missing_policy_is_trouble_of_the_host(tmp_path: Path) -> None:
    with (
        pytest.raises(SandboxUnavailable, match="cannot prepare"),
        LocalJail(tmp_path / "root", num_slots=1, deploy=tmp_path),
    ):
        pass
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


def test_run_leaves_descriptors_and_threads_as_they_were(run: RUN) -> None:
    run("pass")
    before = (len(list(Path("/proc/self/fd").iterdir())), threading.active_count())
    run("pass", limits=Limits(wall_seconds=5))
    run("import time; time.sleep(9)", limits=Limits(wall_seconds=0.1))
    assert (len(list(Path("/proc/self/fd").iterdir())), threading.active_count()) == before


def _last_instance(root: Path) -> str:
    (folder,) = root.iterdir()
    return folder.name.rpartition(".")[2]


def _wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to be")
