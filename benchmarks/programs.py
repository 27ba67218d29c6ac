"""Programs of many kinds, for what must come out the same in every run."""

from dataclasses import dataclass
from enum import StrEnum

from loopwright.contracts.workspaces import PYTHON

COLD = ("/usr/bin/python3",)
"""Half of the Python programs run so, the others in an interpreter started before."""


class Reads(StrEnum):
    """What a program's output depends on besides its workspace, command and environment."""

    NOTHING = "nothing"
    CLOCK = "the wall clock"
    ENTROPY = "entropy"
    UNPINNED = "what strict runs do not pin"


@dataclass(frozen=True, slots=True)
class Program:
    """One command over the workspace that all programs are given."""

    name: str
    argv: tuple[str, ...]
    reads: Reads = Reads.NOTHING


FILES = {
    "data/numbers.txt": b"".join(b"%d\n" % (n * 7919 % 1009) for n in range(500)),
    "data/words.txt": b"pear apple fig\nplum apple\nfig quince pear apple\n",
    "data/table.csv": b"name,score\nann,3\nbob,11\ncyd,7\n",
    "module.py": b"def double(x):\n    return 2 * x\n",
}
"""Path and content of the workspace."""


def programs() -> list[Program]:
    """Give all of them."""
    python = [
        _python(name, code, interpreter=(PYTHON, COLD)[number % 2])
        for number, (name, code) in enumerate(_PYTHON.items())
    ]
    shell = [Program(name, ("/bin/bash", "-c", code)) for name, code in _SHELL.items()]
    rest = [_python(name, code, reads) for reads, codes in _READING.items() for name, code in codes]
    return python + shell + rest


def _python(
    name: str, code: str, reads: Reads = Reads.NOTHING, interpreter: tuple[str, ...] = COLD
) -> Program:
    return Program(name, (*interpreter, "-c", code), reads)


_PYTHON = {
    "seeded shuffle": "import random; x = list(range(99)); random.Random(1).shuffle(x); print(x)",
    "sets and hashes": "print({chr(i) for i in range(90)}, hash('a'), hash((1, 'b', 2.5)))",
    "addresses": "print(id(object()), [].__init__, lambda: 0)",
    "identity": "import os; print(os.getpid(), os.getppid(), os.getuid(), os.uname().nodename)",
    "environment": "import os; print(dict(os.environ), os.getcwd(), os.umask(0))",
    "folder listing": "import os; print([(w[0], w[1], w[2]) for w in os.walk('.')])",
    "times of given files": "import os; print([os.stat(p).st_mtime for p in ('.', 'module.py')])",
    "inodes": (
        "import os\nfor i in range(30): open(f'new{i}', 'w')\n"
        "print(sorted((os.stat(n).st_ino, n) for n in os.listdir('.')))"
    ),
    "statistics": "import statistics as s; x = [int(l) for l in open('data/numbers.txt')]\n"
    "print(s.mean(x), s.median(x), s.stdev(x))",
    "float formatting": "import math; print([math.sin(i) ** 3 / 7 for i in range(200)])",
    "deep recursion": "def f(n): return n and f(n - 1)\ntry: f(10**6)\nexcept RecursionError as e:"
    " print(e)",
    "uncaught exception": "import json; json.loads('{\"a\": }')",
    "exit code": "import sys; print('to stderr', file=sys.stderr); sys.exit(42)",
    "abort": "import os; print('before', flush=True); os.abort()",
    "out of memory": "x = []\nwhile True: x.append(bytearray(1 << 24))",
    "binary output": "import sys; sys.stdout.buffer.write(bytes(range(256)) * 20)",
    "truncated output": "print('é' * 100_000)",
    "files written": "from pathlib import Path\nfor i in range(50):\n"
    " p = Path(f'out/{i % 7}/{i}.txt'); p.parent.mkdir(parents=True, exist_ok=True)\n"
    " p.write_text('x' * i * 100)",
    "modes and links": "import os; os.chmod('module.py', 0o755); os.symlink('module.py', 'link')\n"
    "os.mkdir('nothing'); os.rename('data/words.txt', 'moved.txt')",
    "names that are not text": r"import os; open(b'n\xff\xfe', 'wb').write(b'1')"
    "\nprint(os.listdir('.'))",
    "subprocess": "import subprocess as s\nfor i in range(5): print(s.run(['echo', str(i)],"
    " capture_output=True).stdout)",
    "threads with a lock": "import threading as t; lock = t.Lock(); n = [0]\n"
    "def f():\n for _ in range(999):\n  with lock: n[0] += 1\n"
    "x = [t.Thread(target=f) for _ in range(8)]\n[i.start() for i in x]; [i.join() for i in x]\n"
    "print(n)",
    "database": "import sqlite3; d = sqlite3.connect('x.db'); d.execute('create table t (a, b)')\n"
    "d.executemany('insert into t values (?, ?)', [(i, str(i)) for i in range(500)]); d.commit()\n"
    "print(d.execute('select sum(a), max(b) from t').fetchall())",
    "archive": "import zipfile; z = zipfile.ZipFile('x.zip', 'w', zipfile.ZIP_DEFLATED)\n"
    "[z.write(p) for p in ('module.py', 'data/table.csv')]; z.close()",
    "import of a module": "import sys; sys.path.insert(0, '.'); import module\n"
    "print(module.double(21), module.__file__)",
    "processors": "import os; print(os.cpu_count() > 0, len(os.sched_getaffinity(0)))",
}
_SHELL = {
    "sort and count": "tr ' ' '\\n' < data/words.txt | sort | uniq -c | sort -rn",
    "loop and arithmetic": 'for i in $(seq 200); do echo -n "$((i * i % 97)) "; done',
    "find": "find . -type f | xargs sha256sum",
    "awk and sed": "awk -F, '{s += $2} END {print s}' data/table.csv; sed s/a/b/g module.py",
    "archive by tar": "tar -cf all.tar --sort=name data module.py && sha256sum all.tar",
    "no such program": "no-such-program; echo $?",
}
_READING = {
    Reads.CLOCK: (
        ("time and date", "import time, datetime as d; print(time.time(), d.datetime.now())"),
        ("file named by the time", "import time; open(f'log-{time.time_ns()}', 'w')"),
    ),
    Reads.ENTROPY: (
        ("random numbers", "import random; print(random.random(), random.sample(range(99), 9))"),
        ("uuid4 and secrets", "import uuid, secrets; print(uuid.uuid4(), secrets.token_hex())"),
        ("temporary names", "import tempfile; print(tempfile.mkstemp(dir='.'))"),
        ("os.urandom", "import os; open('bytes', 'wb').write(os.urandom(64))"),
    ),
    Reads.UNPINNED: (
        ("time spent", "import time; print(time.perf_counter_ns(), time.process_time_ns())"),
        ("times of new files", "import os; open('new', 'w'); print(os.stat('new').st_mtime_ns)"),
    ),
}
