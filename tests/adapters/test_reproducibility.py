"""The same command on the same workspace: the same files and output; strict runs in every part."""

from collections.abc import Iterator

import pytest

from benchmarks.programs import Reads
from benchmarks.reproducibility import differing, must_be_equal
from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.workspaces import PYTHON, CommandRequest, Strict, Workspace
from tests.adapters.jails import needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]

RANDOM = (
    "import os, random, uuid, tempfile, secrets, time, datetime\n"
    "print(os.urandom(8), random.random(), uuid.uuid4(), secrets.token_hex(4))\n"
    "print(time.time(), datetime.datetime.now(), os.path.basename(tempfile.mktemp()))\n"
    "open('out', 'w').write(str(random.random()))"
)


@pytest.fixture(scope="module", params=["native", "nsjail"])
def jail(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalJail]:
    root = tmp_path_factory.mktemp("jails") / "root"
    with LocalJail(root, num_slots=2, launcher=request.param) as opened:
        yield opened


def outcome(jail: LocalJail, request: CommandRequest) -> tuple[bytes, bytes, int | None, str]:
    done = jail.run(Workspace.of({"in": b"1"}), request)
    result = done.result
    return result.stdout, result.stderr, result.exit_code, done.workspace.digest


@pytest.mark.parametrize("python", [PYTHON, ("/usr/bin/python3",)], ids=["warm", "cold"])
@pytest.mark.parametrize(
    "code",
    [
        "print({chr(i) for i in range(90)}, id(object()), hash('a'), [].__init__)",
        "import os; print(os.getpid(), os.listdir('.'), os.cpu_count(), os.stat('in')[:2])",
        "import os; print(os.environ)",
        "def f(n): return 1 + f(n + 1)\ntry: f(0)\nexcept RecursionError as e: print(e)",
        "import inspect, sys; print(len(inspect.stack()), sys.argv, sys.path, sys.flags)",
    ],
)
def test_program_without_clock_and_entropy_always_does_the_same(
    jail: LocalJail, python: tuple[str, ...], code: str
) -> None:
    request = CommandRequest(argv=(*python, "-c", code))
    assert len({outcome(jail, request) for _ in range(6)}) == 1


def test_strict_runs_see_the_same_entropy_and_clock(jail: LocalJail) -> None:
    request = CommandRequest(argv=("/usr/bin/python3", "-c", RANDOM), strict=Strict(seed=7))
    outcomes = {outcome(jail, request) for _ in range(4)}
    assert len(outcomes) == 1
    assert b"1600000000.0 2020-09-13 12:26:40" in outcomes.pop()[0]


def test_seed_and_clock_can_be_chosen(jail: LocalJail) -> None:
    argv = ("/usr/bin/python3", "-c", RANDOM)
    stricts = (Strict(seed=1), Strict(seed=2), Strict(seed=1, clock=1))
    assert len({outcome(jail, CommandRequest(argv=argv, strict=one)) for one in stricts}) == 3


@pytest.mark.parametrize(
    "command",
    ["shuf -i 1-1000 -n 20", "seq 300 | sort -R", "mktemp -u"],
)
def test_tools_that_draw_by_the_library_draw_from_the_seed(jail: LocalJail, command: str) -> None:
    def drawn(seed: int) -> bytes:
        argv = ("/bin/sh", "-c", f"{command} | head -n 400")
        request = CommandRequest(argv=argv, strict=Strict(seed=seed))
        result = jail.run(Workspace(), request).result
        assert (result.exit_code, result.stderr) == (0, b"")
        return result.stdout

    assert drawn(1) == drawn(1) != b""
    assert drawn(1) != drawn(2)


def test_entropy_begins_anew_where_a_program_has_read_it_all(jail: LocalJail) -> None:
    code = (
        "import ctypes\n"
        "draw = ctypes.CDLL(None).getrandom\n"
        "much, few = (ctypes.create_string_buffer(n) for n in (3 << 20, 4))\n"
        "for _ in range(3): print(draw(much, 3 << 20, 0), draw(few, 4, 0), few.raw.hex())"
    )
    request = CommandRequest(argv=("/usr/bin/python3", "-c", code), strict=Strict(seed=1))
    lines = jail.run(Workspace(), request).result.stdout.splitlines()
    assert len(lines) == len(set(lines)) == 3
    assert all(line.startswith(b"3145728 4 ") for line in lines)


def test_strictness_in_force_is_in_the_result(jail: LocalJail) -> None:
    strict = Strict(seed=3)
    request = CommandRequest(argv=("/bin/date", "+%s"), strict=strict)
    result = jail.run(Workspace(), request).result
    assert (result.strict, result.stdout) == (strict, b"1600000000\n")


@pytest.mark.parametrize("strict", [None, Strict(seed=1)], ids=["plain", "strict"])
def test_programs_of_many_kinds_do_the_same_in_every_run(
    jail: LocalJail, strict: Strict | None
) -> None:
    different = differing(jail, 5, strict)
    promised = [reads for reads in Reads if must_be_equal(reads, strict)]
    assert {reads: [p.name for p in different[reads]] for reads in promised} == {
        reads: [] for reads in promised
    }


def test_plain_runs_differ_in_entropy(jail: LocalJail) -> None:
    request = CommandRequest(argv=("/usr/bin/python3", "-c", RANDOM))
    assert outcome(jail, request) != outcome(jail, request)


def test_loopback_is_up_where_it_is_asked_for(jail: LocalJail) -> None:
    code = (
        "import socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 8123))\n"
        "client = socket.create_connection(('127.0.0.1', 8123)); print('connected')"
    )
    argv = ("/usr/bin/python3", "-c", code)
    up = jail.run(Workspace(), CommandRequest(argv=argv, has_loopback=True)).result
    down = jail.run(Workspace(), CommandRequest(argv=argv)).result
    assert (up.stdout, up.exit_code) == (b"connected\n", 0)
    assert down.exit_code == 1
