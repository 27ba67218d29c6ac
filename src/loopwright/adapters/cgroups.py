"""Control groups, which bound and measure what one jail uses; versions 1 and 2 alike.

Version 2 is taken where it has the controllers, else the version 1 hierarchies. A host that has
them in neither is refused: limits that hold only for one process are no limits.
"""

import os
import signal
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loopwright.contracts.failures import SandboxUnavailable

GROUP = "loopwright"
"""Parent of all our groups, in every hierarchy."""
_REQUIRED = {1: {"memory", "pids", "cpuacct"}, 2: {"memory", "pids", "cpu"}}
_OPTIONAL = {1: {"cpu", "cpuset"}, 2: {"cpuset"}}
_EMPTY_SECONDS = 5.0
_FILE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Usage:
    """What a group has used since ``Cgroup.begin``."""

    cpu_seconds: float
    peak_memory_bytes: int
    oom_kills: int


class Cgroup(ABC):
    """One slot's place in every hierarchy."""

    @property
    @abstractmethod
    def folders(self) -> tuple[Path, ...]:
        """Name its directory in every hierarchy."""

    @abstractmethod
    def begin(self, *, memory_bytes: int, max_processes: int) -> None:
        """Set the limits of the next run and start counting anew."""

    @abstractmethod
    def usage(self) -> Usage:
        """Say what was used since ``begin``."""

    @property
    def procs_files(self) -> tuple[str, ...]:
        """Name the files through which a process joins."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    @property
    def pids(self) -> list[int]:
        """List the processes inside."""
        return [int(pid) for pid in Path(self.procs_files[0]).read_text().split()]

    def remove(self) -> None:
        """Kill what is left inside and take the group away."""
        for folder in self.folders:
            remove_group(folder)


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where this host's controllers are mounted, and which version they speak."""

    version: int
    roots: dict[str, Path]
    """Mount point by controller."""

    def folders(self, name: str) -> tuple[Path, ...]:
        """Name the directories of one group, one for each mount point."""
        return tuple(root / GROUP / name for root in sorted(set(self.roots.values())))

    def names(self, prefix: str) -> set[str]:
        """List the groups that exist under a prefix."""
        parents = {root / GROUP for root in self.roots.values()}
        return {path.name for parent in parents for path in parent.glob(f"{prefix}*")}


def find_hierarchies(mountinfo: str | None = None) -> Hierarchies:
    """Find the controllers of this host, or of a given ``/proc/self/mountinfo``.

    Raises:
        SandboxUnavailable: memory, processes or CPU time cannot be controlled.
    """
    text = mountinfo if mountinfo is not None else Path("/proc/self/mountinfo").read_text()
    v1: dict[str, Path] = {}
    v2: dict[str, Path] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        root = Path(before.split()[4])
        if kind == "cgroup":
            v1 |= {name: root for name in options.split(",") if name in _wanted(1)}
        elif kind == "cgroup2":
            v2 |= {name: root for name in _controllers(root) if name in _wanted(2)}
    for version, roots in ((2, v2), (1, v1)):
        if _REQUIRED[version] <= roots.keys():
            return Hierarchies(version, roots)
    raise SandboxUnavailable(
        f"control groups lack {', '.join(sorted(_REQUIRED[1] - v1.keys()))} (version 1) and "
        f"{', '.join(sorted(_REQUIRED[2] - v2.keys()))} (version 2); mount the controllers, or "
        "give the container a writable /sys/fs/cgroup"
    )


def make_group(folder: Path) -> None:
    """Create a group; another process may be taking the parent away at the same time."""
    for _ in range(20):
        folder.parent.mkdir(exist_ok=True)
        try:
            folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            continue
        return
    raise SandboxUnavailable(f"cannot create the control group {folder}")


def num_cpus() -> int:
    """Say how many CPUs jails are spread over."""
    return len(os.sched_getaffinity(0))


def remove_group(folder: Path) -> None:
    """Kill what is left in a group and take it away.

    Raises:
        SandboxUnavailable: processes cannot be ended.
    """
    deadline = time.monotonic() + _EMPTY_SECONDS
    while not _remove(folder):
        if time.monotonic() > deadline:
            raise SandboxUnavailable(f"the control group {folder} does not get empty")
        time.sleep(0.005)


def remove_parents(hierarchies: Hierarchies) -> None:
    """Take our parent groups away where nobody else uses them."""
    for root in set(hierarchies.roots.values()):
        with suppress(OSError):
            (root / GROUP).rmdir()


def write_value(path: str | Path, value: int | str) -> None:
    """Write one value; every run waits for several of these.

    Raises:
        OSError: the host refuses.
    """
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, str(value).encode())
    finally:
        os.close(file)


def read_value(path: str | Path) -> str:
    """Read one value, or a few lines of them."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, _FILE_BYTES).decode("ascii")
    finally:
        os.close(file)


def read_counters(path: str | Path) -> dict[str, int]:
    """Read a file of ``name number`` lines."""
    lines = read_value(path).splitlines()
    return {name: int(value) for name, _, value in (line.partition(" ") for line in lines)}


def _remove(folder: Path) -> bool:
    """Try to take one group away, after a blow at everything in it."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return False
    return True


def _wanted(version: int) -> set[str]:
    return _REQUIRED[version] | _OPTIONAL[version]


def _controllers(root: Path) -> list[str]:
    try:
        return (root / "cgroup.controllers").read_text().split()
    except OSError:
        return []
