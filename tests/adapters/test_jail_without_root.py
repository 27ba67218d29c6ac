"""Jails of an ordinary user, without control groups: what still holds, and what is known not to."""

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import MIB, PYTHON, CommandRequest, Limits, Workspace
from tests.adapters.attack_programs import END, FORGERY, OUTSIDE, PRELUDE
from tests.adapters.jails import needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]

USER_ID = 1234
HELD = set(OUTSIDE) - {"other processors"}  # no control group assigns them
ENDS: dict[str, tuple[str, dict[str, object]]] = {
    "forgery": (FORGERY, {"exit_code": 77}),
    "memory of one process": ("bytearray(1 << 30)", {"exit_code": 1, "oom": False}),
    "sleep": ("import time; time.sleep(60)", {"timed_out": True}),
    "processor": ("while True: pass", {"timed_out": True}),
    "flood": ("import os\nwhile True: os.write(1, bytes(65536))", {"output_limit": True}),
    "processes": (
        "import os, time\ntry:\n  while True: os.fork() or time.sleep(60)\n"
        "except OSError: os._exit(9)",
        {"exit_code": 9},
    ),
    "files": (
        "import os\ntry:\n  for i in range(99): open(f'/tmp/{i}', 'wb').write(bytes(1 << 20))\n"
        "except OSError: os._exit(9)",
        {"exit_code": 9},
    ),
    "daemon": (
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(999)",
        {"exit_code": 0},
    ),
}


@pytest.mark.parametrize("launcher", ["native", "nsjail"])
def test_attacks_hold_without_root_but_for_memory_of_all_together(
    launcher: str, tmp_path: Path
) -> None:
    def attack() -> dict[str, object]:
        found: dict[str, object] = {}
        root = tmp_path / "root"
        with LocalJail(root, num_slots=1, launcher=launcher, may_be_degraded=True) as jail:
            for name in HELD:
                found[name] = run(jail, PRELUDE + OUTSIDE[name] + END)["stdout"]
            for name, (code, _) in ENDS.items():
                found[name] = run(jail, code)
        found["left"] = root.exists()
        return found

    found = as_ordinary_user(attack, tmp_path)
    assert found.pop("left") is False
    for name, (_, expected) in ENDS.items():
        ended = found.pop(name)
        assert isinstance(ended, dict)
        assert {field: ended[field] for field in expected} == expected, name
    assert found == dict.fromkeys(HELD, "done\n")


def test_jails_without_root_are_refused_unless_asked_for(tmp_path: Path) -> None:
    def try_it() -> str:
        try:
            with LocalJail(tmp_path / "root", num_slots=1):
                return "made"
        except SandboxUnavailable as error:
            return str(error)

    assert "LOOPWRIGHT_SANDBOX_DEGRADED=1" in str(as_ordinary_user(try_it, tmp_path))


def run(jail: LocalJail, code: str) -> dict[str, object]:
    limits = Limits(
        wall_seconds=10, cpu_seconds=1, memory_bytes=64 * MIB, max_processes=16, drain_bytes=MIB
    )
    if "sleep(60)" in code and "fork" not in code:
        limits = limits.model_copy(update={"wall_seconds": 0.5})
    request = CommandRequest(argv=(*PYTHON, "-c", code), limits=limits)
    result = jail.run(Workspace(), request).result
    found: dict[str, object] = result.model_dump(exclude={"stdout", "stderr"})
    return found | {"stdout": result.stdout.decode()}


def as_ordinary_user(deed: Callable[[], object], folder: Path) -> dict[str, object]:
    """Do it in a child process of another user, and give back what it gave."""
    reader, writer = os.pipe()
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    os.chown(folder, USER_ID, USER_ID)
    child = os.fork()
    if child == 0:
        try:
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            os.setgroups([])
            os.setresgid(USER_ID, USER_ID, USER_ID)
            os.setresuid(USER_ID, USER_ID, USER_ID)
            answer = json.dumps({"value": deed()}, default=str)
        except BaseException:
            answer = json.dumps({"value": {"error": traceback.format_exc()}})
        with os.fdopen(writer, "w") as told:
            told.write(answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        answer = told.read()
    os.waitpid(child, 0)
    value = json.loads(answer)["value"]
    return value if isinstance(value, dict) else {"value": value}
