"""Hostile programs in the jail, by what they reach for and exhaust; and bad requests."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
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
from loopwright.core.protocols import JailRun
from tests.adapters.attack_programs import END, FORGERY, OUTSIDE, PRELUDE
from tests.adapters.jails import COLD_PYTHON, needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]

_RT_SIGACTION, _LIBRARY_SIGNAL = 13, 32
"""A system call, and a signal that the C library would not let a program set."""
SMALL = Limits(wall_seconds=10, cpu_seconds=5, memory_bytes=64 * MIB, max_processes=16)
HONEST = CommandRequest(argv=("/bin/echo", "honest"))


@pytest.fixture(scope="module", params=["native", "nsjail"])
def jail(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalJail]:
    root = tmp_path_factory.mktemp("jails") / "root"
    with LocalJail(root, num_slots=1, launcher=request.param) as opened:
        yield opened


def python(jail: LocalJail, code: str, **fields: object) -> CommandResult:
    """Run a program in the interpreter that waits."""
    words: dict[str, object] = {"argv": (*PYTHON, "-c", code), "limits": SMALL, **fields}
    return jail.run(Workspace(), CommandRequest.model_validate(words)).result


def is_usable(jail: LocalJail) -> bool:
    """Whether an honest command runs on the slot, and all of it that lives is what waits."""
    return jail.run(Workspace(), HONEST).result.stdout == b"honest\n"


@pytest.mark.parametrize("name", OUTSIDE)
def test_program_reaches_nothing_but_its_own(jail: LocalJail, name: str) -> None:
    result = python(jail, PRELUDE + OUTSIDE[name] + END)
    assert (result.stdout, result.stderr) == (b"done\n", b"")


@pytest.mark.parametrize("name", ["descriptors", "parts of /proc that tell of the host"])
def test_program_started_anew_reaches_no_more(jail: LocalJail, name: str) -> None:
    result = python(jail, "", argv=(*COLD_PYTHON, "-c", PRELUDE + OUTSIDE[name] + END))
    assert (result.stdout, result.stderr) == (b"done\n", b"")


@pytest.mark.parametrize("has_loopback", [False, True])
def test_sockets_of_the_host_are_out_of_reach(jail: LocalJail, has_loopback: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        named.bind(f"\0bait-{os.getpid()}")
        named.listen()
        port = server.getsockname()[1]
        code = (
            f"attempt('port', lambda: socket.create_connection(('127.0.0.1', {port}), timeout=2))\n"
            f"attempt('name', lambda: socket.socket(1).connect('\\0bait-{os.getpid()}'))\n"
        )
        assert python(jail, PRELUDE + code + END, has_loopback=has_loopback).stdout == b"done\n"


def test_report_of_how_it_ended_cannot_be_forged(jail: LocalJail) -> None:
    result = python(jail, FORGERY)
    assert (result.exit_code, result.signal, result.timed_out) == (77, None, False)


@pytest.mark.parametrize(
    "deed",
    [
        "os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGSEGV)",
        "signal.pidfd_send_signal(os.pidfd_open(1), signal.SIGKILL)",
        "[resource.prlimit(1, limit, (0, 0)) for limit in range(16)]",
        "os.setpriority(os.PRIO_PROCESS, 1, 19); os.sched_setaffinity(1, {0})",
        "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
    ],
)
def test_process_1_cannot_be_harmed(jail: LocalJail, deed: str) -> None:
    code = (
        "import os, resource, signal, time\nchild = os.fork()\nif child == 0:\n"
        f"  try: {deed}\n  except OSError: pass\n  os._exit(0)\n"
        "os.waitpid(child, 0)\nos._exit(5)"
    )
    assert python(jail, code).exit_code == 5
    assert is_usable(jail)


def test_program_that_kills_all_it_sees_has_killed_itself(jail: LocalJail) -> None:
    code = "import os, time\nif os.fork() == 0: os.kill(-1, 9)\ntime.sleep(60)"
    assert python(jail, code).signal == signal.SIGKILL
    assert is_usable(jail)


def test_everything_stopped_ends_at_the_wall_limit(jail: LocalJail) -> None:
    code = "import os\nfor _ in range(5): os.fork()\nos.kill(-1, 19)\nos.kill(0, 19)"
    limits = SMALL.model_copy(update={"wall_seconds": 0.5, "max_processes": 64})
    assert python(jail, code, limits=limits).timed_out
    assert is_usable(jail)


HOGS = {
    "anonymous memory": "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "memory files": "import os\nx = []\nwhile True:\n"
    "  x.append(os.memfd_create('m')); os.write(x[-1], bytes(8 << 20))",
    "shared memory": "import ctypes\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\n"
    "while True:\n  at = c.shmat(c.shmget(0, 8 << 20, 0o1600), 0, 0)\n"
    "  ctypes.memset(at, 1, 8 << 20); c.shmdt(ctypes.c_void_p(at))",
    "small files together": "for place in ('/tmp', '/dev/shm', '/workspace'):\n"
    "  try:\n    with open(place + '/x', 'wb') as f:\n      while True: f.write(bytes(1 << 20))\n"
    "  except OSError: pass",
    "pipes": "import fcntl, os\nwhile True:\n  if os.fork() == 0:\n"
    "    for _ in range(100):\n      r, w = os.pipe(); os.set_blocking(w, False)\n"
    "      try:\n        while True: os.write(w, bytes(4096))\n      except OSError: pass\n"
    "    os.kill(os.getpid(), 19)",
    "sockets": "import os, socket\nx = []\nwhile True:\n"
    "  if os.fork() == 0:\n    for _ in range(100):\n"
    "      x.append(socket.socketpair()); x[-1][0].setblocking(False)\n"
    "      try:\n        while True: x[-1][0].send(bytes(4096))\n      except OSError: pass\n"
    "    os.kill(os.getpid(), 19)",
}


@pytest.mark.parametrize("name", HOGS)
def test_memory_is_bounded_whatever_it_is_made_of(jail: LocalJail, name: str) -> None:
    limits = SMALL.model_copy(update={"wall_seconds": 3, "memory_bytes": 32 * MIB})
    result = python(jail, HOGS[name], limits=limits, collect=False)
    assert result.peak_memory_bytes <= 32 * MIB
    assert result.oom or result.timed_out or result.exit_code == 1
    assert is_usable(jail)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("n = 0\ntry:\n  while True: os.close(os.open(f'f{n}', 66)); n += 1\n", b"28"),
        ("f = os.open('f', 66)\ntry: os.ftruncate(f, 1 << 40)\n", b"27"),
        ("f = os.open('f', 66)\ntry: os.pwrite(f, b'x', 1 << 39)\n", b"27"),
        ("try:\n  for _ in range(900): os.mkdir('d' * 200); os.chdir('d' * 200)\n", b""),
        ("try:\n  while True: os.open('/dev/null', 0)\n", b"24"),
        ("try:\n  while True: threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
         "except RuntimeError: os._exit(print('11', flush=True) or 0)\n", b"11"),
        ("try:\n  while True: os.fork() or time.sleep(60)\n", b"11"),
    ],
    ids=["inodes", "sparse", "holes", "depth", "descriptors", "threads", "processes"],
)  # fmt: skip
def test_limit_is_an_error_of_the_program(jail: LocalJail, code: str, told: bytes) -> None:
    code = f"import os, threading, time\n{code}except OSError as error: print(error.errno)"
    result = python(jail, code, limits=SMALL.model_copy(update={"disk_bytes": 8 * MIB}))
    assert result.stdout.strip() == told
    assert is_usable(jail)


def test_hostile_names_come_back_as_they_are(jail: LocalJail) -> None:
    names = (
        b"new\nline",
        b"\xff\xfe",
        b"-rf",
        b"$(id)",
        b"\x1b[31m",
        b"a" * 255,
        b"..x",
        b"~",
        b"e\xcc\x81",
    )
    code = f"for name in {names}: open(name, 'w').close()"
    request = CommandRequest(argv=(*PYTHON, "-c", code))
    left = jail.run(Workspace(), request).workspace
    assert [entry.raw_path for entry in left.files] == sorted(names)


def test_traps_for_the_reader_are_skipped_and_told(jail: LocalJail) -> None:
    code = (
        "import os, socket\n"
        "os.symlink('/etc/shadow', 'out'); os.symlink('../../etc', 'up'); os.mkfifo('pipe')\n"
        "socket.socket(1).bind('socket'); open('good', 'w').write('g')\n"
        "os.mkdir('shut'); os.chmod('shut', 0)\n"
        "os.symlink('loop', 'loop'); os.symlink('/proc/self/environ', 'env'); os.chmod('.', 0)"
    )
    done: JailRun = jail.run(Workspace(), CommandRequest(argv=(*PYTHON, "-c", code)))
    assert {entry.path for entry in done.workspace.files} == {"good", "loop", "shut"}
    assert {skip.path for skip in done.skipped} == {"out", "up", "pipe", "socket", "env"}


def test_holes_do_not_cost_the_host_memory_that_the_program_may_not_have(jail: LocalJail) -> None:
    limits = SMALL.model_copy(update={"disk_bytes": 1 << 40})
    words = ("/usr/bin/truncate", "-s", "512G", "holes")
    assert jail.run(Workspace(), CommandRequest(argv=words, limits=limits)).result.output_limit
    assert is_usable(jail)


def test_files_given_may_be_more_than_the_memory(jail: LocalJail) -> None:
    given = Workspace.of({str(number): bytes(24 * MIB) for number in range(2)})
    limits = SMALL.model_copy(update={"memory_bytes": 32 * MIB})
    done = jail.run(given, CommandRequest(argv=("/bin/true",), limits=limits))
    assert (done.result.exit_code, done.workspace.digest) == (0, given.digest)


@pytest.mark.parametrize("stream", [1, 2])
def test_flood_by_a_daemon_is_ended_at_the_output_limit(jail: LocalJail, stream: int) -> None:
    code = (
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n"
        f"  while True: os.write({stream}, bytes(65536))\ntime.sleep(60)"
    )
    limits = SMALL.model_copy(update={"output_bytes": 1000, "drain_bytes": MIB})
    result = python(jail, code, limits=limits)
    assert result.output_limit
    assert max(len(result.stdout), len(result.stderr)) == 1000
    assert is_usable(jail)


def test_daemons_that_hold_the_output_keep_nobody_waiting(jail: LocalJail) -> None:
    code = (
        "import os, signal, time\nprint('out', flush=True)\nfor _ in range(3):\n"
        "  if os.fork() == 0:\n    os.setsid()\n    for n in range(1, 65):\n"
        "      try: signal.signal(n, signal.SIG_IGN)\n      except (OSError, ValueError): pass\n"
        "    if os.fork() == 0: time.sleep(3600)\n    os._exit(0)\n"
        "for _ in range(3): os.wait()"
    )
    result = python(jail, code)
    assert (result.exit_code, result.stdout, result.num_strays) == (0, b"out\n", 3)
    assert is_usable(jail)


WORDS = {
    "NUL in an argument": {"argv": ("/bin/echo", "a\0b")},
    "NUL in a variable": {"argv": ("/bin/env",), "env": {"A": "b\0C=d"}},
    "a variable with an equals sign": {"argv": ("/bin/env",), "env": {"A=B": "c"}},
    "a variable without a name": {"argv": ("/bin/env",), "env": {"": "c"}},
    "half a character": {"argv": ("/bin/echo", "\ud800")},
    "one huge argument": {"argv": ("/bin/echo", "x" * 200_000)},
    "more than a kernel takes": {"argv": ("/bin/echo", *("x" * 1000,) * 3000)},
    "more than process 1 takes": {"argv": (*PYTHON, "-c", "", *("x" * 1000,) * 9000)},
    "huge variables": {"argv": ("/bin/env",), "env": {f"V{i}": "x" * 1000 for i in range(9000)}},
    "no program": {"argv": ("/no/such/program",)},
    "an empty name": {"argv": ("",)},
    "a folder": {"argv": ("/usr",)},
    "a file that is no program": {"argv": ("/etc/passwd",)},
}


@pytest.mark.parametrize("name", WORDS)
def test_command_that_cannot_be_started_says_why(jail: LocalJail, name: str) -> None:
    result = jail.run(Workspace(), CommandRequest.model_validate(WORDS[name])).result
    assert result.exit_code in (126, 127)
    assert result.start_error
    assert result.start_error.encode() in result.stderr
    assert is_usable(jail)


def test_bytes_that_are_no_text_are_good_arguments(jail: LocalJail) -> None:
    request = CommandRequest(argv=("/bin/echo", "-n", "\udcff"), env={"A": "\udcfe"})
    assert jail.run(Workspace(), request).result.stdout == b"\xff"


def test_input_that_is_never_read_holds_nobody_up(jail: LocalJail) -> None:
    result = python(jail, "print(1)", stdin=bytes(50_000_000))
    assert (result.exit_code, result.stdout) == (0, b"1\n")


def test_workspace_with_too_many_files_is_refused_and_the_slot_goes_on(jail: LocalJail) -> None:
    with pytest.raises(TaskError, match="No space left"):
        jail.run(Workspace.of({f"f{i}": b"" for i in range(10_100)}), HONEST)
    assert is_usable(jail)


def test_memory_that_the_host_lacks_is_refused(jail: LocalJail) -> None:
    limits = Limits(memory_bytes=1 << 40, disk_bytes=1 << 40)
    with pytest.raises(SandboxUnavailable, match="this host has"):
        jail.run(Workspace(), CommandRequest(argv=("/bin/true",), limits=limits))
    assert is_usable(jail)


@pytest.mark.parametrize("launcher", ["native", "nsjail"])
def test_jail_is_the_same_whatever_its_supervisor_was_started_with(
    launcher: str, tmp_path: Path
) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from loopwright.adapters.local_jail import LocalJail\n"
        "from loopwright.contracts.workspaces import CommandRequest, Workspace\n"
        "words = ('/bin/sh', '-c', 'grep -E \"^(Umask|SigIgn|SigBlk):\" /proc/self/status; nice')\n"
        "with LocalJail(Path(sys.argv[1]), num_slots=1, launcher=sys.argv[2]) as jail:\n"
        "    print(jail.run(Workspace(), CommandRequest(argv=words)).result.stdout.decode())\n"
    )

    def spoil() -> None:
        os.umask(0o077)
        os.nice(3)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        ignored = (ctypes.c_ulong * 4)(1, 0, 0, 0)
        ctypes.CDLL(None).syscall(_RT_SIGACTION, _LIBRARY_SIGNAL, ignored, None, 8)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    words = [sys.executable, "-c", code, str(tmp_path / "root"), launcher]
    told = subprocess.run(words, preexec_fn=spoil, capture_output=True, text=True, check=True)
    none = "0" * 16
    assert told.stdout.split() == ["Umask:", "0022", "SigBlk:", none, "SigIgn:", none, "0"]
