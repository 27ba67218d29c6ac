"""A control group in the version 1 hierarchies, one directory for each controller."""

from pathlib import Path

from loopwright.adapters.cgroups import (
    GROUP,
    Cgroup,
    Hierarchies,
    Usage,
    make_group,
    num_cpus,
    read_counters,
    read_value,
    write_value,
)

_PERIOD_MICROSECONDS = 100_000
_SHARES = 1024
"""Weight of all jails on one CPU together: that of one process of the host."""


class CgroupV1(Cgroup):
    """One slot's groups: one CPU, and the memory and processes of each run."""

    def __init__(self, hierarchies: Hierarchies, name: str, *, cpu: int) -> None:
        """Create the groups, bound to one CPU.

        Raises:
            OSError: the host refuses.
        """
        self._folders = hierarchies.folders(name)
        roots = hierarchies.roots
        for folder in self._folders:
            make_group(folder)
        self._memory, self._pids, cpuacct = (
            str(roots[controller] / GROUP / name) for controller in ("memory", "pids", "cpuacct")
        )
        self._cpu_usage = f"{cpuacct}/cpuacct.usage"
        self._peak = f"{self._memory}/memory.max_usage_in_bytes"
        if "cpuset" in roots:
            _bind(roots["cpuset"], name, cpu)
        if "cpu" in roots:
            folder = roots["cpu"] / GROUP
            write_value(folder / "cpu.shares", _SHARES * num_cpus())
            write_value(folder / name / "cpu.cfs_period_us", _PERIOD_MICROSECONDS)
            write_value(folder / name / "cpu.cfs_quota_us", _PERIOD_MICROSECONDS)
        self._limits: tuple[int, int] | None = None
        self._cpu_before = 0
        self._oom_before = 0

    @property
    def folders(self) -> tuple[Path, ...]:
        """Name its directory in every hierarchy."""
        return self._folders

    def begin(self, *, memory_bytes: int, max_processes: int) -> None:
        """Set the limits of the next run and start counting anew."""
        if self._limits != (memory_bytes, max_processes):
            self._limits = None
            self._limit_memory(memory_bytes)
            write_value(f"{self._pids}/pids.max", max_processes)
            self._limits = (memory_bytes, max_processes)
        write_value(self._peak, 0)
        self._cpu_before = int(read_value(self._cpu_usage))
        self._oom_before = self._oom_kills()

    def usage(self) -> Usage:
        """Say what was used since ``begin``."""
        return Usage(
            cpu_seconds=(int(read_value(self._cpu_usage)) - self._cpu_before) / 1e9,
            peak_memory_bytes=int(read_value(self._peak)),
            oom_kills=self._oom_kills() - self._oom_before,
        )

    def _limit_memory(self, memory_bytes: int) -> None:
        """Limit memory, and memory with swap where swap is counted, else use no swap."""
        with_swap = Path(self._memory, "memory.memsw.limit_in_bytes")
        if with_swap.exists():
            write_value(with_swap, -1)  # it may never be below the limit without swap
        else:
            write_value(f"{self._memory}/memory.swappiness", 0)
        write_value(f"{self._memory}/memory.limit_in_bytes", memory_bytes)
        if with_swap.exists():
            write_value(with_swap, memory_bytes)

    def _oom_kills(self) -> int:
        return read_counters(f"{self._memory}/memory.oom_control").get("oom_kill", 0)


def _bind(root: Path, name: str, cpu: int) -> None:
    """Give the group one CPU, which no program inside can widen."""
    nodes = read_value(root / "cpuset.mems").strip()
    parent = root / GROUP
    write_value(parent / "cpuset.cpus", read_value(root / "cpuset.cpus").strip())
    write_value(parent / "cpuset.mems", nodes)
    write_value(parent / name / "cpuset.cpus", cpu)
    write_value(parent / name / "cpuset.mems", nodes)
