"""Jails of an ordinary user, without control groups: what still holds, and what is known not to."""

from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.roots import Roots
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import MIB, PYTHON, CommandRequest, Limits, Strict, Workspace
from tests.adapters.attack_programs import END, FORGERY, OUTSIDE, PRELUDE
from tests.adapters.jails import as_ordinary_user, needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]

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


@pytest.mark.parametrize("launcher", ["native", "nsjail"])
def test_strict_runs_without_root_are_equal_and_their_clock_stands(
    launcher: str, tmp_path: Path
) -> None:
    code = (
        "import os, random, time, uuid\n"
        "print(time.time(), random.random(), uuid.uuid4(), os.urandom(8), end=' ')\n"
        "print(open('/dev/random', 'rb').read(8))"
    )

    def run_strictly() -> list[str]:
        root = tmp_path / "root"
        with LocalJail(root, num_slots=1, launcher=launcher, may_be_degraded=True) as jail:
            requests = [
                CommandRequest(
                    argv=("/usr/bin/python3", "-c", code),
                    strict=Strict(seed=seed, clock=1_700_000_000),
                )
                for seed in (1, 1, 2)
            ]
            return [jail.run(Workspace(), request).result.stdout.decode() for request in requests]

    first, again, other = as_ordinary_user(run_strictly, tmp_path)["value"]
    assert first.startswith("1700000000.0 0.")
    assert first == again != other
    assert other.startswith("1700000000.0 0.")


@pytest.mark.parametrize("launcher", ["native", "nsjail"])
def test_packages_are_imported_without_root_and_cannot_be_changed(
    launcher: str, tmp_path: Path
) -> None:
    def run_with_packages() -> list[object]:
        (tmp_path / "given").mkdir()
        (tmp_path / "given" / "greeting.py").write_text("WORD = 'hello'\n")
        roots = Roots(tmp_path / "roots")
        digest = roots.import_packages(tmp_path / "given", "greetings").digest
        folder = f"/packages/{digest[:12]}"
        code = f"import greeting; print(greeting.WORD, flush=True); open('{folder}/x', 'w')"
        request = CommandRequest(
            argv=("/usr/bin/python3", "-c", code), packages=(digest,), env={"PYTHONPATH": folder}
        )
        with LocalJail(
            tmp_path / "root", num_slots=1, launcher=launcher, may_be_degraded=True, roots=roots
        ) as jail:
            result = jail.run(Workspace(), request).result
        return [result.exit_code, result.stdout.decode(), result.stderr.decode()]

    exit_code, stdout, stderr = as_ordinary_user(run_with_packages, tmp_path)["value"]
    assert (exit_code, stdout) == (1, "hello\n")
    assert "Read-only file system" in stderr


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
