"""A program in the interpreter that waits ends as one in python3: exit, output, files left."""

import re
from collections.abc import Iterator

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.workspaces import MIB, PYTHON, CommandRequest, Limits, Workspace
from tests.adapters.jails import needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]

ANEW = ("/usr/bin/env", *PYTHON)
"""The same interpreter, started when the command comes."""
LIMITS = Limits(wall_seconds=10, memory_bytes=64 * MIB)
BYE = "class Bye:\n  def __del__(self): print('bye')\n"
PROGRAMS = (
    "print('é', chr(0x1F600), '\\udcff')",
    "import sys; sys.exit(3)",
    "import sys; sys.exit('why')",
    "raise SystemExit((1, 2))",
    "raise SystemExit(-1)",
    "raise SystemExit(10 ** 30)",
    "1 / 0",
    "def f(): g()\ndef g(): raise KeyError('k')\nf()",
    "try: 1 / 0\nexcept Exception as error: raise ValueError('x') from error",
    "raise ExceptionGroup('g', [ValueError(1)])",
    "def f(:\n  pass",
    "class E(Exception):\n  def __str__(self): raise ValueError\nraise E",
    "raise KeyboardInterrupt",
    "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
    "import os; print('lost'); os._exit(4)",
    "import os; os.abort()",
    "import ctypes; ctypes.string_at(0)",
    "import posix, sys; posix._exit = lambda code: None; sys.exit(5)",
    "import os; os._exit = lambda code: None; print('x')",
    "import sys; sys.modules.clear(); print('x')",
    "import sys; sys.modules['gc'] = sys.modules['io'] = sys.modules['posix'] = None; print('x')",
    "import threading; threading._shutdown = lambda: 1 / 0; print('x')",
    "import builtins; builtins.__dict__.clear()",
    "import builtins; del builtins.isinstance, builtins.print, builtins.BaseException; 1 / 0",
    "import atexit; atexit.register(print, 'bye'); print('hi')",
    "import atexit, sys; atexit.register(print, 'bye'); del sys.modules['atexit']",
    "import atexit, os; atexit.register(os._exit, 9); print('hi', flush=True)",
    "import atexit; atexit.register(lambda: 1 / 0)",
    "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()\nprint('main')",
    "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
    "import threading\nthreading.Thread(target=lambda: 1 / 0, name='T').start()",
    "import sys; print(1); sys.stdout = None",
    "import sys; print(1); del sys.stdout",
    "import sys, io; print(1); sys.stdout = io.StringIO(); print(2)",
    "import sys; print(1); sys.stdout.close()",
    "import sys\nclass W:\n  def write(self, text): pass\n  def flush(self): raise RuntimeError\n"
    "sys.stdout = W()",
    "import os; print(1); os.close(1)",
    "import os\nfor fd in range(3): os.close(fd)\nprint(1)",
    "import os; os.closerange(0, 300); print(1)",
    "import os; os.execv('/bin/echo', ['echo', 'hi'])",
    "import os\nif os.fork() == 0: print('child')\nelse: os.wait(); print('parent')",
    "import os, time\nif os.fork() == 0: time.sleep(99)\nprint('parent')",
    "import sys; sys.excepthook = lambda *what: print('hook', what[0]); 1 / 0",
    "import sys\ndef hook(*what): sys.exit(8)\nsys.excepthook = hook\n1 / 0",
    "import sys\ndef trace(frame, event, what): print(event); return trace\nsys.settrace(trace)",
    "import sys\ndef trace(*what): raise ValueError\nsys.settrace(trace)",
    BYE + "x = Bye()",
    BYE + "x = Bye(); x.me = x",
    "def g():\n  try: yield\n  finally: print('finally')\nx = g(); next(x)",
    "file = open('out', 'w'); file.write('x')",
    "import io\nclass T(io.TextIOWrapper): pass\nfile = T(open('out', 'wb')); file.write('x')",
    "import tempfile; folder = tempfile.TemporaryDirectory(); print(len(folder.name))",
    "x: int = 1; print(sorted(globals()), __annotations__, locals() is globals())",
    "import sys; print(sys.argv, sys.orig_argv, sys.path, sorted(sys.modules))",
    "import os; print(os.listdir('/proc/self/fd'), os.getpid(), os.getppid(), os.getsid(0))",
    "import sys; print(repr(sys.stdin.read()), sys.stdout.encoding, sys.stderr.errors)",
    "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
)


@pytest.fixture(scope="module")
def jail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJail]:
    with LocalJail(tmp_path_factory.mktemp("jails") / "root", num_slots=1) as opened:
        yield opened


@pytest.mark.parametrize("code", PROGRAMS)
def test_program_given_as_text_ends_as_in_python3(jail: LocalJail, code: str) -> None:
    assert outcome(jail, PYTHON, "-c", code) == outcome(jail, ANEW, "-c", code)


@pytest.mark.parametrize("code", PROGRAMS[:12])
def test_program_in_a_file_ends_as_in_python3(jail: LocalJail, code: str) -> None:
    given = {"run.py": code.encode("utf-8", "surrogatepass")}
    warm = outcome(jail, PYTHON, "./run.py", "word", given=given)
    assert warm == outcome(jail, ANEW, "./run.py", "word", given=given)


def test_missing_file_is_told_as_by_python3(jail: LocalJail) -> None:
    assert outcome(jail, PYTHON, "no.py") == outcome(jail, ANEW, "no.py")


def test_thread_that_never_ends_is_timed_out(jail: LocalJail) -> None:
    code = "import threading, time; threading.Thread(target=time.sleep, args=(99,)).start()"
    limits = LIMITS.model_copy(update={"wall_seconds": 0.5})
    request = CommandRequest(argv=(*PYTHON, "-c", code), limits=limits)
    assert jail.run(Workspace(), request).result.timed_out


def outcome(
    jail: LocalJail, python: tuple[str, ...], *words: str, given: dict[str, bytes] | None = None
) -> tuple[object, ...]:
    """Say how a program ended, addresses of objects left out."""
    request = CommandRequest(argv=(*python, *words), stdin=b"line\n", limits=LIMITS)
    done = jail.run(Workspace.of(given or {}), request)
    result = done.result
    ended = (result.exit_code, result.signal, result.timed_out, result.num_strays)
    texts = (re.sub(rb"0x[0-9a-f]+", b"0x", text) for text in (result.stdout, result.stderr))
    return (*ended, *texts, done.workspace.digest)
