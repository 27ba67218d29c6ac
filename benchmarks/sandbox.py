"""What the jail adds to a program: the same program in a fresh jail and as a plain process."""

import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.ratios import Ratio, median_seconds
from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.workspaces import CommandRequest, Workspace
from loopwright.core.protocols import Jail

PROGRAM = b"def f(x):\n    return max(x * x, 6) + 8\n\nprint([f(x) for x in range(100)])\n"
COMMAND = ("/usr/bin/python3", "-I", "-S", "-B", "program.py")
REPEATS = 40
NUM_SLOTS = 2
BATCH = 20
"""Runs of one measurement of throughput."""


def run() -> list[Ratio]:
    """Measure latency of one run, and time of a batch that fills every slot."""
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory(prefix="bench-", dir=_run_folder()) as root,
        LocalJail(Path(root), num_slots=NUM_SLOTS) as jail,
    ):
        (Path(folder) / "program.py").write_bytes(PROGRAM)
        latency = median_seconds(
            lambda: run_jailed(jail), lambda: run_plain(folder), repeats=REPEATS
        )
        batch = median_seconds(
            lambda: _in_parallel(lambda: run_jailed(jail)),
            lambda: _in_parallel(lambda: run_plain(folder)),
            repeats=5,
        )
    return [
        Ratio("one program, jailed against plain", *latency, at_most=4.0),
        Ratio(f"{BATCH} programs on {NUM_SLOTS} slots, jailed against plain", *batch, at_most=4.0),
    ]


def run_jailed(jail: Jail) -> None:
    """Run the program in a fresh jail, workspace laid out and collected."""
    done = jail.run(Workspace.of({"program.py": PROGRAM}), CommandRequest(argv=COMMAND))
    assert done.result.exit_code == 0, done.result


def run_plain(folder: str) -> None:
    """Run the program as a plain process, output captured."""
    subprocess.run(COMMAND, cwd=folder, check=True, capture_output=True)


def _in_parallel(call: Callable[[], None]) -> None:
    with ThreadPoolExecutor(NUM_SLOTS) as threads:
        for done in [threads.submit(call) for _ in range(BATCH)]:
            done.result()


def _run_folder() -> Path:
    """Give a folder that a jail's uid can reach."""
    folder = Path("/run/loopwright")
    folder.mkdir(exist_ok=True)
    return folder
