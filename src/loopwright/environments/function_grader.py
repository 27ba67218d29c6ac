"""Calls of a function in the jail, compared on the host.

Only inputs go in; expected values stay here. The answer runs in a process whose standard streams
lead nowhere, and results come back on a private descriptor, each line behind a nonce. A case
without a result line of its own is not passed, whatever the exit status says.

Not covered: an answer that searches its own process for the descriptor and the nonce can forge
*a* value, but it still has to know the expected one, which is nowhere in the jail.
"""

import json
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from loopwright.contracts.episodes import Verdict
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.tasks import Case
from loopwright.contracts.workspaces import (
    MIB,
    PYTHON,
    CommandRequest,
    CommandResult,
    Limits,
    Workspace,
)
from loopwright.core.protocols import Jail

_RUNNER = "function_runner.py"
_NONCE_BYTES = 16
_RESULT_BYTES = 8 * MIB


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What one call came to."""

    is_passed: bool
    shown: str = ""
    """The value or error as the policy may see it; empty when there was no result."""


@dataclass(frozen=True, slots=True)
class CasesRun:
    """Outcomes of all calls, and how the process that made them ended."""

    outcomes: tuple[CaseOutcome, ...]
    result: CommandResult


def run_cases(
    answer: str, entry: str, cases: Sequence[Case], *, jail: Jail, limits: Limits
) -> CasesRun:
    """Call ``entry`` of the program ``answer`` with each case's arguments, in one fresh jail.

    Raises:
        SandboxUnavailable: the host could not run it, or kept it from running until it timed out.
    """
    nonce = secrets.token_hex(_NONCE_BYTES)
    request = {"nonce": nonce, "entry": entry, "calls": [case.args for case in cases]}
    runner = (files("loopwright.environments") / _RUNNER).read_text("utf-8")
    command = CommandRequest(
        argv=(*PYTHON, "-c", runner),
        stdin=json.dumps(request).encode(),
        # Results of all calls share one stream: what it keeps is ours to choose.
        limits=limits.model_copy(update={"output_bytes": max(limits.output_bytes, _RESULT_BYTES)}),
        collect=False,
    )
    # Nothing but the answer: a workspace that is kept for the turn anyway.
    workspace = Workspace.of({"answer.py": answer.encode("utf-8", "replace")})
    result = jail.run(workspace, command).result
    if result.timed_out and result.is_suspect:
        raise SandboxUnavailable("the host gave the answer's program too little processor time")
    found = _results(result.stdout, nonce, len(cases))
    outcomes = tuple(_judge(case, found.get(i)) for i, case in enumerate(cases))
    return CasesRun(outcomes=outcomes, result=result)


def verdict_of(run: CasesRun, num_cases: int) -> Verdict:
    """Say what a run means: every case needs its own evidence for a pass."""
    if len(run.outcomes) == num_cases and all(outcome.is_passed for outcome in run.outcomes):
        return Verdict.PASS
    result = run.result
    if result.timed_out:
        return Verdict.TIMEOUT
    if result.oom:
        return Verdict.OOM
    if result.output_limit:
        return Verdict.OUTPUT_LIMIT
    if result.exit_code != 0 and any(not outcome.shown for outcome in run.outcomes):
        return Verdict.CRASHED
    return Verdict.FAIL


def _results(output: bytes, nonce: str, num_cases: int) -> dict[int, dict[str, Any]]:
    """Read the result lines; a second line for a case makes the case void."""
    found: dict[int, dict[str, Any]] = {}
    void: set[int] = set()
    for line in output.decode("utf-8", "replace").splitlines():
        head, _, body = line.partition(" ")
        entry = _decode(body) if head == nonce else None
        if not isinstance(entry, dict):
            continue
        index = entry.get("case")
        if type(index) is not int or not 0 <= index < num_cases:
            continue
        if index in found:
            void.add(index)
        found[index] = entry
    return {index: entry for index, entry in found.items() if index not in void}


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _judge(case: Case, entry: dict[str, Any] | None) -> CaseOutcome:
    if entry is None:
        return CaseOutcome(is_passed=False)
    if "value" not in entry:
        return CaseOutcome(is_passed=False, shown=_plain(str(entry.get("error", "an error"))))
    try:
        value = _decode_value(entry["value"])
        return CaseOutcome(is_passed=is_equal(value, case.expected), shown=_show(value))
    # The value is the answer's own making: whatever cannot be handled is not the one expected.
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError):
        return CaseOutcome(is_passed=False, shown="a value that cannot be read")


def _decode_value(value: Any) -> Any:
    """Undo the runner's coding: integers as hex, for JSON readers bound their length, and objects.

    Raises:
        ValueError: the value is not coded so.
    """
    if isinstance(value, list):
        return [_decode_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "int":
        return int(content, 16)
    if kind == "dict" and isinstance(content, dict):
        return {key: _decode_value(item) for key, item in content.items()}
    raise ValueError(f"a value of kind {kind!r}")


def _show(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return "a very large number"
    return _plain(repr(value))


def _plain(text: str) -> str:
    """Cut a text, and escape what no message can hold."""
    return text[:200].encode("utf-8", "backslashreplace").decode()


def is_equal(value: Any, expected: Any) -> bool:
    """Compare two JSON values with their types: True is not 1, and NaN equals nothing."""
    if isinstance(expected, float) and type(value) in (int, float):
        return math.isfinite(value) and float(value) == expected
    if type(value) is not type(expected):
        return False
    if isinstance(expected, list):
        return len(value) == len(expected) and all(
            is_equal(a, b) for a, b in zip(value, expected, strict=True)
        )
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(
            is_equal(value[key], expected[key]) for key in expected
        )
    return bool(value == expected)
