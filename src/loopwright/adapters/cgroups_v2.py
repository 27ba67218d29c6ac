"""A control group in the unified hierarchy, version 2."""

from contextlib import suppress
from pathlib import Path
from typing import TextIO

from loopwright.adapters.cgroups import (
    GROUP,
    Cgroup,
    Hierarchies,
    Usage,
    make_group,
    num_cpus,
    read_counters,
    write_value,
)
from loopwright.contracts.failures import SandboxUnavailable

_WEIGHT = 100
"""Weight of all jails on one CPU together: that of one process of the host."""
_MAX_WEIGHT = 10_000


class CgroupV2(Cgroup):
    """One slot's group; what it counts is read as differences, for it serves many runs.

    Kernels before 6.12 cannot reset the peak of memory: there it is the largest of the slot so far.
    """

    def __init__(self, hierarchies: Hierarchies, name: str, *, cpu: int) -> None:
        """Hand our parent the controllers.

        Raises:
            SandboxUnavailable: the host does not delegate them.
        """
        self._root = hierarchies.roots["memory"]
        self._folder = self._root / GROUP / name
        self._cpu = cpu
        self._controllers = sorted(hierarchies.roots)
        self._limits: tuple[int, int] | None = None
        self._peak_file: TextIO | None = None
        self._cpu_before, self._oom_before = 0.0, 0
        make_group(self._folder)
        for parent in (self._root, self._root / GROUP):
            self._delegate(parent)
        weight = min(_WEIGHT * num_cpus(), _MAX_WEIGHT)
        write_value(self._root / GROUP / "cpu.weight", weight)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Name its directory."""
        return (self._folder,)

    def begin(self, *, memory_bytes: int, max_processes: int) -> None:
        """Set the limits of the next run and start counting anew."""
        if self._limits != (memory_bytes, max_processes):
            self._limits = None
            self._limit(memory_bytes, max_processes)
            self._limits = (memory_bytes, max_processes)
        self._reset_peak()
        self._cpu_before, self._oom_before = self._cpu_seconds(), self._oom_kills()

    def usage(self) -> Usage:
        """Say what was used since ``begin``."""
        return Usage(
            cpu_seconds=self._cpu_seconds() - self._cpu_before,
            peak_memory_bytes=self._peak(),
            oom_kills=self._oom_kills() - self._oom_before,
        )

    def remove(self) -> None:
        """Kill what is left inside and take the group away."""
        if self._peak_file is not None:
            self._peak_file.close()
        super().remove()

    def _limit(self, memory_bytes: int, max_processes: int) -> None:
        self._write("memory.max", memory_bytes)
        self._write_if_there("memory.swap.max", 0)
        self._write("pids.max", max_processes)
        self._write("cpu.max", "100000 100000")
        self._write_if_there("cpuset.cpus", self._cpu)

    def _cpu_seconds(self) -> float:
        return read_counters(self._folder / "cpu.stat")["usage_usec"] / 1e6

    def _oom_kills(self) -> int:
        return read_counters(self._folder / "memory.events").get("oom_kill", 0)

    def _reset_peak(self) -> None:
        """Start a new peak, which holds for readers of this one open file only."""
        path = self._folder / "memory.peak"
        if self._peak_file is None and path.exists():
            with suppress(PermissionError):  # it is read-only before Linux 6.12
                self._peak_file = path.open("r+")
        if self._peak_file is not None:
            self._peak_file.write("reset")
            self._peak_file.flush()

    def _peak(self) -> int:
        if self._peak_file is not None:
            self._peak_file.seek(0)
            return int(self._peak_file.read())
        peak = self._folder / "memory.peak"
        return int((peak if peak.exists() else self._folder / "memory.current").read_text())

    def _delegate(self, parent: Path) -> None:
        wanted = " ".join(f"+{name}" for name in self._controllers)
        try:
            (parent / "cgroup.subtree_control").write_text(wanted)
        except OSError as error:
            raise SandboxUnavailable(
                f"{parent} does not delegate {wanted}: {error}; run the worker outside the root "
                "of its control group namespace, or delegate the controllers to it"
            ) from error

    def _write(self, file: str, value: int | str) -> None:
        write_value(self._folder / file, value)

    def _write_if_there(self, file: str, value: int | str) -> None:
        if (self._folder / file).exists():
            self._write(file, value)
