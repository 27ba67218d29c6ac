"""What one jail can learn of another: of one that runs beside it, and of the one before it."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.workspaces import MIB, PYTHON, CommandRequest, Limits, Strict, Workspace
from tests.adapters.attack_programs import END, PRELUDE
from tests.adapters.jails import left_on_host, needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]

PLACES = (
    *("/jinit", "/usr", "/usr/bin/env", "/etc", "/etc/passwd", "/", "/tmp", "/dev/shm"),
    *("/dev/null", "/dev/zero", "/dev/urandom", "/workspace", "/proc", "/packages"),
)
LEAVE = f"""
import fcntl, socket, time
kept = []
for place in {PLACES}:
    fd = os.open(place, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.set_inheritable(fd, True)
    kept.append(fd)
for name in ("\\0left", "/tmp/left", "/dev/shm/left", "/workspace/left"):
    kept.append(socket.socket(socket.AF_UNIX))
    kept[-1].bind(name); kept[-1].listen(); kept[-1].set_inheritable(True)
kept.append(socket.socket(socket.AF_INET))
try: kept[-1].bind(("127.0.0.1", 34567)); kept[-1].listen(); kept[-1].set_inheritable(True)
except OSError: pass
rt = ctypes.CDLL("librt.so.1", use_errno=True)
made = (libc.shmget(77, 4096, 0o1666), libc.semget(77, 1, 0o1666), libc.msgget(77, 0o1666))
if min(made) < 0: raise OSError("nothing left")
shape = ctypes.create_string_buffer(struct.pack("<8q", 0, 1, 8, 0, 0, 0, 0, 0))
if rt.mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o666, shape) < 0: raise OSError("no queue")
for folder in ("/tmp", "/dev/shm", "/workspace"):
    with open(folder + "/file", "w") as file: file.write("left")
for number in range(3):
    try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("10.0.0.1", 9))
    except OSError: pass
os.umask(0)
os.setpriority(os.PRIO_USER, 1000, 10)
"""
LOOK = f"""
import fcntl, select, socket
counters = [line.split() for line in open("/proc/self/net/snmp")]
if counters[1][11] != "0" or counters[1][12] != "0": reached("count of what was sent", counters[:2])
for place in {PLACES}:
    fd = os.open(place, os.O_RDONLY)
    try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: reached("lock", place)
for name in ("\\0left", "/tmp/left", "/dev/shm/left", "/workspace/left"):
    attempt(name, lambda: socket.socket(socket.AF_UNIX).connect(name))
attempt("port", lambda: socket.create_connection(("127.0.0.1", 34567), timeout=2))
if max(libc.shmget(77, 0, 0), libc.semget(77, 0, 0), libc.msgget(77, 0)) >= 0: reached("IPC")
if ctypes.CDLL("librt.so.1").mq_open(b"/left", os.O_RDWR) >= 0: reached("queue")
for folder in ("/tmp", "/dev/shm", "/workspace"):
    if os.listdir(folder): reached("files", folder, os.listdir(folder))
if os.umask(0o22) != 0o22: reached("umask")
if os.getpriority(os.PRIO_PROCESS, 0): reached("priority")
others = {{name for name in os.listdir("/proc") if name.isdigit()}} - {{"1", str(os.getpid())}}
if others: reached("processes", others)
"""
LIMITS = Limits(wall_seconds=60, memory_bytes=64 * MIB)


@pytest.fixture(scope="module", params=["native", "nsjail"])
def launcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def jail(launcher: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJail]:
    root = tmp_path_factory.mktemp("jails") / "root"
    with LocalJail(root, num_slots=1, launcher=launcher) as opened:
        yield opened


def request_of(code: str, *, has_loopback: bool = False) -> CommandRequest:
    argv = (*PYTHON, "-c", PRELUDE + code)
    return CommandRequest(argv=argv, limits=LIMITS, has_loopback=has_loopback)


@pytest.mark.parametrize("has_loopback", [False, True])
def test_program_finds_nothing_of_the_one_before_it(jail: LocalJail, has_loopback: bool) -> None:
    daemon = "\nif os.fork() == 0:\n  os.setsid()\n  while True: time.sleep(60)\n"
    left = jail.run(Workspace(), request_of(LEAVE + daemon + END, has_loopback=has_loopback)).result
    assert (left.stdout, left.stderr) == (b"done\n", b"")
    found = jail.run(Workspace(), request_of(LOOK + END, has_loopback=has_loopback)).result
    assert (found.stdout, found.stderr) == (b"done\n", b"")


@pytest.mark.parametrize("has_loopback", [False, True])
def test_program_finds_nothing_of_the_one_beside_it(
    launcher: str, tmp_path: Path, has_loopback: bool
) -> None:
    mark = ("/bin/sleep", str(5_000_000 + os.getpid()))
    stay = LEAVE + f"os.execv('/bin/sleep', {list(mark)})"
    with (
        LocalJail(tmp_path / "root", num_slots=2, launcher=launcher) as jail,
        ThreadPoolExecutor(1) as threads,
    ):
        beside = threads.submit(jail.run, Workspace(), request_of(stay, has_loopback=has_loopback))
        pid = wait_for(mark)
        found = jail.run(Workspace(), request_of(LOOK + END, has_loopback=has_loopback)).result
        assert left_on_host(*mark) == [pid]
        os.kill(int(pid), signal.SIGKILL)
        assert beside.result().result.signal == signal.SIGKILL
    assert (found.stdout, found.stderr) == (b"done\n", b"")


def test_watch_of_a_shared_file_does_not_tell_what_others_do(launcher: str, tmp_path: Path) -> None:
    mark = f"watch{os.getpid()}"
    code = (
        "import select\n"
        "watched = libc.inotify_init1(os.O_NONBLOCK)\n"
        "for path in (b'/usr/bin/env', b'/usr/bin', b'/jinit', b'/etc', b'/dev/null', b'/dev'):\n"
        "    if libc.inotify_add_watch(watched, path, 0xFFF) < 0: raise OSError(path)\n"
        f"libc.prctl(15, b'{mark}')\n"
        "if select.select([watched], [], [], 1.5)[0]: reached(os.read(watched, 4096))\n"
    ) + END
    work = CommandRequest(argv=("/usr/bin/env", "sh", "-c", "cat /etc/passwd > /dev/null; ls /dev"))
    with (
        LocalJail(tmp_path / "root", num_slots=2, launcher=launcher) as jail,
        ThreadPoolExecutor(1) as threads,
    ):
        beside = threads.submit(jail.run, Workspace(), request_of(code))
        wait_for_name(mark)
        for _ in range(3):
            assert jail.run(Workspace(), work).result.exit_code == 0
        assert beside.result().result.stdout == b"done\n"


def test_entropy_of_a_strict_run_is_not_that_of_the_next(jail: LocalJail) -> None:
    read = ("/usr/bin/od", "-An", "-N8", "-tx8", "/dev/urandom")
    strict = [
        jail.run(Workspace(), CommandRequest(argv=read, strict=Strict(seed=seed))).result.stdout
        for seed in (1, 2, 1)
    ]
    real = [jail.run(Workspace(), CommandRequest(argv=read)).result.stdout for _ in range(2)]
    assert strict[0] == strict[2]
    assert len({*strict, *real}) == 4


def wait_for(words: tuple[str, ...]) -> str:
    for _ in range(500):
        if found := left_on_host(*words):
            return found[0]
        time.sleep(0.02)
    raise AssertionError(f"{words} never ran")


def wait_for_name(name: str) -> None:
    for _ in range(500):
        for path in Path("/proc").glob("[0-9]*/comm"):
            try:
                if path.read_text().strip() == name:
                    return
            except OSError:
                continue
        time.sleep(0.02)
    raise AssertionError(f"{name} never ran")
