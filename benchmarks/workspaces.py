"""What workspaces cost: their snapshot, restore and reset, on file systems in memory as jails have.

References are a plain process (``/bin/true``) for what is small, and one that walks, reads and
hashes the same files for what is large.
"""

import hashlib
import itertools
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.ratios import Ratio, median_seconds
from loopwright.adapters.collect import collect, lay_out, open_folder
from loopwright.adapters.mounts import mount_tmpfs, unmount
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.workspaces import MIB, Workspace

TMPFS = f"size={256 * MIB},nr_inodes=20000,mode=755"
WORDS = b"def return import self for while if else yield class print index value result x y".split()
MAX_BYTES = 1 << 30
NUM_EDITS = 3
_numbers = itertools.count()


def run() -> list[Ratio]:
    """Measure on 10 files of 4 KB, and on 1,000 files of 20 KB."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        workspaces = Workspaces(InMemoryObjectStore(), Path(scratch) / "cache", max_bytes=MAX_BYTES)
        small, large = made(10, 4_000), made(1_000, 20_000)
        small_digest, large_digest = workspaces.keep(small), workspaces.keep(large)
        empty = stack.enter_context(mounted(Path(scratch) / "empty"))
        few, many = (
            stack.enter_context(holding(Path(scratch) / name, workspace))
            for name, workspace in (("few", small), ("many", large))
        )

        def restore() -> None:
            reset(empty)
            laid_out(workspaces.load(small_digest), empty, workspaces)

        def take_base() -> None:
            with workspaces.base_folder(large_digest):
                pass

        hashing = median_seconds(
            lambda: snapshot(many, workspaces), lambda: edit_and_hash(many), repeats=15
        )
        return [
            against_process("empty workspace", lambda: reset(empty), at_most=1.0),
            against_process("snapshot of 10 files", lambda: snapshot(few, workspaces), at_most=4.0),
            against_process("restore of 10 files", restore, at_most=3.0),
            against_process("base of 1,000 files", take_base, at_most=1.0),
            Ratio("snapshot of 1,000 files against hashing", *hashing, at_most=1.5),
        ]


def against_process(name: str, ours: Callable[[], object], *, at_most: float) -> Ratio:
    """Compare with the start and end of a process."""
    times = median_seconds(ours, plain_process, repeats=40)
    return Ratio(f"{name} against a process", *times, at_most=at_most)


def snapshot(folder: Path, workspaces: Workspaces) -> str:
    """Edit some files, collect all of them and keep them by their digest."""
    edit(folder)
    with open_folder(folder) as opened:
        found = collect(opened, max_bytes=MAX_BYTES, blobs=workspaces)
    return workspaces.keep(found.workspace)


def edit_and_hash(folder: Path) -> None:
    """Edit as a snapshot does, then walk, read and hash."""
    edit(folder)
    for parent, _, names in os.walk(folder):
        for name in names:
            hashlib.sha256((Path(parent) / name).read_bytes()).hexdigest()


def edit(folder: Path) -> None:
    """Give some files a content that no file had before."""
    for index in range(NUM_EDITS):
        (folder / "d0" / f"edited{index}.py").write_bytes(b"x = %d\n" % next(_numbers) * 500)


def reset(folder: Path) -> None:
    """Put an empty file system in the place of a used one."""
    unmount(folder)
    mount_tmpfs(folder, TMPFS)


def plain_process() -> None:
    """Start the smallest program and wait for it."""
    subprocess.run(("/bin/true",), check=True)


def laid_out(workspace: Workspace, folder: Path, workspaces: Workspaces | None = None) -> None:
    """Write a workspace's files into a folder."""
    with open_folder(folder) as opened:
        lay_out(workspace, opened, owner=os.geteuid(), blobs=workspaces)


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """Give an empty file system in memory."""
    folder.mkdir()
    mount_tmpfs(folder, TMPFS)
    try:
        yield folder
    finally:
        unmount(folder)


@contextmanager
def holding(folder: Path, workspace: Workspace) -> Iterator[Path]:
    """Give a file system in memory with the files of a workspace."""
    with mounted(folder):
        laid_out(workspace, folder)
        yield folder


def made(num_files: int, num_bytes: int) -> Workspace:
    """Make files of text that is like a program's, the same in every run."""
    chance = random.Random(0)
    names = (f"d{index % 30}/file{index}.py" for index in range(num_files))
    return Workspace.of(
        {name: b" ".join(chance.choices(WORDS, k=num_bytes))[:num_bytes] for name in names}
    )
