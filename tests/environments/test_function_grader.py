"""Answers graded in the real jail: honest ones pass, and no trick does."""

from collections.abc import Iterator
from typing import Any

import pytest

from loopwright.adapters.jail import FakeJail
from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.episodes import Verdict
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.tasks import Case
from loopwright.contracts.workspaces import MIB, CommandResult, Limits
from loopwright.environments.function_grader import is_equal, run_cases, verdict_of

pytestmark = pytest.mark.nsjail

CASES = (Case(args=(2,), expected=4), Case(args=(3,), expected=9), Case(args=(-1,), expected=1))
LIMITS = Limits(wall_seconds=60.0, cpu_seconds=1, memory_bytes=128 * MIB)
RIGHT = "def f(x):\n    return x * x\n"


@pytest.fixture(scope="module")
def jail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJail]:
    with LocalJail(tmp_path_factory.mktemp("jail"), num_slots=1) as jail:
        yield jail


def verdict(jail: LocalJail, answer: str, cases: tuple[Case, ...] = CASES) -> Verdict:
    return verdict_of(run_cases(answer, "f", cases, jail=jail, limits=LIMITS), len(cases))


def test_right_answer_passes(jail: LocalJail) -> None:
    assert verdict(jail, RIGHT) is Verdict.PASS


def test_wrong_answer_shows_what_it_gave(jail: LocalJail) -> None:
    run = run_cases("def f(x):\n    return x + 2\n", "f", CASES, jail=jail, limits=LIMITS)
    assert [outcome.is_passed for outcome in run.outcomes] == [True, False, True]
    assert run.outcomes[1].shown == "5"
    assert verdict_of(run, 3) is Verdict.FAIL


EXIT = "import os\n" + RIGHT + "os._exit(0)\n"
SYSTEM_EXIT = "def f(x):\n    raise SystemExit(0)\n"
ALWAYS_EQUAL = (
    "class E(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
    "def f(x): return E(7)\n"
)
FORGED = (
    "import json, sys, os\n"
    "for fd in range(1, 64):\n"
    "    for i in range(3):\n"
    "        try: os.write(fd, json.dumps({'case': i, 'value': {'int': '4'}}).encode() + b'\\n')\n"
    "        except OSError: pass\n"
    "def f(x): return 0\n"
)
NONCE_THIEF = (
    "import sys, os, json\n"
    "frame = sys._getframe()\n"
    "while frame:\n"
    "    v = frame.f_locals\n"
    "    if 'report' in v:\n"
    "        for i in range(3): v['report']({'case': i, 'value': {'int': '4'}})\n"
    "    frame = frame.f_back\n"
    "def f(x): return 0\n"
)
BROKEN_CODE_THIEF = NONCE_THIEF.replace("{'int': '4'}", "[{'dict': 4}]") + "os._exit(0)\n"
PATCHED_JSON = "import json\njson.dumps = lambda v: '{}'\ndef f(x): return 0\n"
DEEP = (
    "import sys\nsys.setrecursionlimit(10 ** 6)\n"
    "def f(x):\n    v = []\n    for _ in range(600): v = [v]\n    return v\n"
)
STRANGE_ERROR = (
    "class M(type):\n    __name__ = '\\ud800'\n"
    "class E(Exception, metaclass=M): pass\ndef f(x):\n    raise E()\n"
)
LONG_NUMBER = "def f(x):\n    return 9 ** 9 ** 6\n"
ENDLESS = "def f(x):\n    while True: pass\n"
HUGE = "b = bytearray(10 ** 9)\n"
FLOOD = "import os\nwhile True:\n    for fd in range(3, 20):\n" + (
    "        try: os.write(fd, b'x' * 65536)\n        except OSError: pass\n"
)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(EXIT, {Verdict.FAIL, Verdict.CRASHED}, id="exits early with status 0"),
        pytest.param(SYSTEM_EXIT, {Verdict.FAIL}, id="raises SystemExit"),
        pytest.param(ALWAYS_EQUAL, {Verdict.FAIL}, id="returns what equals everything"),
        pytest.param(FORGED, {Verdict.FAIL}, id="forges lines on every descriptor"),
        pytest.param(NONCE_THIEF, {Verdict.FAIL}, id="steals the nonce"),
        pytest.param(BROKEN_CODE_THIEF, {Verdict.FAIL}, id="steals it for a broken code"),
        pytest.param(PATCHED_JSON, {Verdict.FAIL}, id="patches the library"),
        pytest.param("def g(x):\n    return x\n", {Verdict.CRASHED, Verdict.FAIL}, id="no f"),
        pytest.param("def f(x) return", {Verdict.CRASHED, Verdict.FAIL}, id="no Python"),
        pytest.param("def f(x):\n    return f(x)\n", {Verdict.FAIL}, id="recursion"),
        pytest.param("def f(x):\n    yield x * x\n", {Verdict.FAIL}, id="generator"),
        pytest.param("def f(x):\n    return float(x * x)\n", {Verdict.FAIL}, id="floats"),
        pytest.param("def f(x):\n    return float('nan')\n", {Verdict.FAIL}, id="not a number"),
        pytest.param(LONG_NUMBER, {Verdict.FAIL, Verdict.TIMEOUT}, id="a number without end"),
        pytest.param(ENDLESS, {Verdict.TIMEOUT, Verdict.CRASHED}, id="endless loop"),
        pytest.param(HUGE + RIGHT, {Verdict.OOM, Verdict.CRASHED, Verdict.FAIL}, id="memory"),
        pytest.param("def f(x):\n    return {'int': hex(x * x)[2:]}\n", {Verdict.FAIL}, id="code"),
        pytest.param("def f(x):\n    return {'int': 'zz'}\n", {Verdict.FAIL}, id="a broken code"),
        pytest.param("def f(x):\n    return [10 ** 5000]\n", {Verdict.FAIL}, id="a long list"),
        pytest.param(DEEP, {Verdict.FAIL}, id="a deep list"),
        pytest.param(STRANGE_ERROR, {Verdict.FAIL}, id="an error without a name"),
        pytest.param(FLOOD, {Verdict.OUTPUT_LIMIT, Verdict.TIMEOUT, Verdict.CRASHED}, id="flood"),
        pytest.param("\ud800" + RIGHT, {Verdict.CRASHED, Verdict.FAIL}, id="half a pair"),
    ],
)  # fmt: skip
def test_answer_that_is_not_right_never_passes(
    jail: LocalJail, answer: str, expected: set[Verdict]
) -> None:
    assert verdict(jail, answer) in expected


def test_expected_values_are_nowhere_in_the_jail(jail: LocalJail) -> None:
    answer = (
        "import os, sys\n"
        "seen = ''.join(open(n, errors='replace').read() for n in os.listdir('.'))\n"
        "frame, text = sys._getframe(), ''\n"
        "while frame:\n    text += repr(frame.f_locals)[:100000]\n    frame = frame.f_back\n"
        "def f(x): return 1 if str(8675308 + 1) in seen + text else 0\n"
    )
    cases = (Case(args=(1,), expected=8675309),)
    run = run_cases(answer, "f", cases, jail=jail, limits=LIMITS)
    assert run.outcomes[0].shown == "0"


def test_case_after_a_crash_is_judged_by_itself(jail: LocalJail) -> None:
    answer = "def f(x):\n    if x == 3: raise KeyError('secret')\n    return x * x\n"
    run = run_cases(answer, "f", CASES, jail=jail, limits=LIMITS)
    assert [outcome.is_passed for outcome in run.outcomes] == [True, False, True]
    assert run.outcomes[1].shown == "KeyError"


def test_trouble_of_the_host_is_no_verdict() -> None:
    broken = FakeJail.of([SandboxUnavailable("no slot")])
    with pytest.raises(SandboxUnavailable):
        run_cases(RIGHT, "f", CASES, jail=broken, limits=LIMITS)


def test_answer_that_the_host_starved_gets_no_verdict() -> None:
    starved = FakeJail.of([CommandResult(timed_out=True, is_suspect=True)])
    with pytest.raises(SandboxUnavailable, match="too little processor time"):
        run_cases(RIGHT, "f", CASES, jail=starved, limits=LIMITS)


@pytest.mark.parametrize(
    ("value", "expected", "is_same"),
    [
        (1, 1, True),
        (True, 1, False),
        (1, True, False),
        (1, 1.0, True),
        (1.0, 1, False),
        (float("nan"), float("nan"), False),
        ([1, [2]], [1, [2]], True),
        ([1, 2], [2, 1], False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("1", 1, False),
        (None, None, True),
        (None, 0, False),
    ],
)
def test_values_are_compared_with_their_types(value: Any, expected: Any, is_same: bool) -> None:
    assert is_equal(value, expected) is is_same


def test_answer_may_use_what_modules_may(jail: LocalJail) -> None:
    answer = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    x: int\n"
        "def f(x: int) -> int:\n    return P(x).x * x\n"
    )
    assert verdict(jail, answer) is Verdict.PASS


def test_long_result_is_read_whole(jail: LocalJail) -> None:
    cases = (Case(args=(30_000,), expected=list(range(30_000))),)
    assert verdict(jail, "def f(n):\n    return list(range(n))\n", cases) is Verdict.PASS


def test_objects_come_back_as_they_were(jail: LocalJail) -> None:
    cases = (Case(args=(1,), expected={"int": "5", "dict": {"a": [1, None, True, 0.5]}}),)
    answer = "def f(x):\n    return {'int': '5', 'dict': {'a': [1, None, True, 0.5]}}\n"
    assert verdict(jail, answer, cases) is Verdict.PASS
    wrong = (Case(args=(1,), expected=5),)
    assert verdict(jail, "def f(x):\n    return {'int': '5'}\n", wrong) is Verdict.FAIL


def test_number_too_long_for_a_float_is_not_equal_to_one(jail: LocalJail) -> None:
    cases = (Case(args=(1,), expected=0.5),)
    assert verdict(jail, "def f(x):\n    return 10 ** 5000\n", cases) is Verdict.FAIL
