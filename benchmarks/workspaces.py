"""What workspaces cost: reset, snapshot and restore, on file systems in memory as jails have."""

import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.figures import Figure, Latency, Ratio
from benchmarks.latency import TRUE
from benchmarks.peers import run_plain
from benchmarks.timing import Case, median_seconds, seconds_of, timed
from loopwright.adapters.collect import collect, lay_out, open_folder
from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.mounts import mount_tmpfs, unmount
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.adapters.plans import Plan
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.workspaces import MIB, Workspace

REPEATS = 20
TMPFS = f"size={256 * MIB},nr_inodes=20000,mode=755"
WORDS = b"def return import self for while if else yield class print index value result x y".split()
MAX_BYTES = 1 << 30
NUM_EDITS = 3
PLAN = Plan(disk_bytes=64 * MIB)
_numbers = itertools.count()


def measure(folder: Path) -> Iterator[Figure]:
    """Measure on 10 files of 4 KB and on 1,000 files of 20 KB, a plain process among them."""
    with ExitStack() as stack:
        workspaces = Workspaces(InMemoryObjectStore(), folder / "cache", max_bytes=MAX_BYTES)
        few, many = (
            stack.enter_context(_holding(folder / name, _made(*size)))
            for name, size in (("few", (10, 4_000)), ("many", (1_000, 20_000)))
        )
        workspaces.keep(_made(1_000, 20_000))
        jail = stack.enter_context(LocalJail(folder / "jails", num_slots=1))
        cases: dict[str, Case] = {
            "plain": timed(lambda: run_plain(TRUE)),
            "reset": lambda: _reset(jail),
            "few": lambda: _snapshot_edited(few, workspaces),
            "many": lambda: _snapshot_edited(many, workspaces),
            "read": timed(lambda: _read_all(many)),
            "restore": lambda: _restore(few, folder / "restored", workspaces),
        }
        medians = median_seconds(cases, repeats=REPEATS)
    plain = medians["plain"]
    yield Latency("reset of a workspace", medians["reset"], 1e-3, plain)
    yield Latency("snapshot of 10 files", medians["few"], 4e-3, plain)
    yield Latency("restore of 10 files", medians["restore"], 3e-3, plain)
    name = "snapshot of 1,000 files after 3 edits / read and hash"
    yield Ratio(name, medians["many"], medians["read"], at_most=1.5)


def _reset(jail: LocalJail) -> float:
    """Give a slot whose jail has ended an empty workspace, and wait until it is there."""
    (slot,) = jail._house.slots
    slot.require(PLAN)
    process = slot.process
    used = process.wait_until_ready()
    process.kill()
    while not used.is_gone:
        process.read_message()

    def reset() -> None:
        slot.renew(PLAN)
        while process.jail is not None and process.jail.workspace < 0:
            process.read_message()

    return seconds_of(reset)


def _snapshot_edited(folder: Path, workspaces: Workspaces) -> float:
    """Give some files contents that no file had before, and time taking all up by their digest."""
    for index in range(NUM_EDITS):
        (folder / "d0" / f"edited{index}.py").write_bytes(b"x = %d\n" % next(_numbers) * 500)
    return seconds_of(lambda: _snapshot(folder, workspaces))


def _snapshot(folder: Path, workspaces: Workspaces) -> str:
    with open_folder(folder) as opened:
        return workspaces.keep(collect(opened, max_bytes=MAX_BYTES, blobs=workspaces).workspace)


def _restore(source: Path, target: Path, workspaces: Workspaces) -> float:
    """Lay out what a digest stands for from what the cache holds."""
    digest = _snapshot(source, workspaces)
    with _mounted(target), open_folder(target) as opened:
        return seconds_of(
            lambda: lay_out(workspaces.load(digest), opened, owner=os.geteuid(), blobs=workspaces)
        )


def _read_all(folder: Path) -> None:
    """Walk, read and hash, with nothing checked and nothing kept."""
    for parent, _, names in os.walk(folder):
        for name in names:
            hashlib.sha256((Path(parent) / name).read_bytes()).hexdigest()


@contextmanager
def _mounted(folder: Path) -> Iterator[Path]:
    """Give an empty file system in memory."""
    folder.mkdir()
    mount_tmpfs(folder, TMPFS)
    try:
        yield folder
    finally:
        unmount(folder)
        folder.rmdir()


@contextmanager
def _holding(folder: Path, workspace: Workspace) -> Iterator[Path]:
    """Give a file system in memory with the files of a workspace."""
    with _mounted(folder):
        with open_folder(folder) as opened:
            lay_out(workspace, opened, owner=os.geteuid())
        yield folder


def _made(num_files: int, num_bytes: int) -> Workspace:
    """Make files of text that is like a program's, the same in every run."""
    chance = random.Random(0)
    names = (f"d{index % 30}/file{index}.py" for index in range(num_files))
    return Workspace.of(
        {name: b" ".join(chance.choices(WORDS, k=num_bytes))[:num_bytes] for name in names}
    )
