"""A control group in the version 1 hierarchies, one directory for each controller."""

from pathlib import Path

from loopwright.adapters.cgroups import GROUP, Cgroup, Hierarchies, Usage, make_group, read_counters

_PERIOD_MICROSECONDS = 100_000


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
        self._memory = roots["memory"] / GROUP / name
        self._pids = roots["pids"] / GROUP / name
        self._cpu_usage = roots["cpuacct"] / GROUP / name / "cpuacct.usage"
        if "cpuset" in roots:
            _bind(roots["cpuset"], name, cpu)
        if "cpu" in roots:
            folder = roots["cpu"] / GROUP / name
            _write(folder / "cpu.cfs_period_us", _PERIOD_MICROSECONDS)
            _write(folder / "cpu.cfs_quota_us", _PERIOD_MICROSECONDS)
        self._cpu_before = 0
        self._oom_before = 0

    @property
    def folders(self) -> tuple[Path, ...]:
        """Name its directory in every hierarchy."""
        return self._folders

    def begin(self, *, memory_bytes: int, max_processes: int) -> None:
        """Set the limits of the next run and start counting anew."""
        self._limit_memory(memory_bytes)
        _write(self._pids / "pids.max", max_processes)
        _write(self._memory / "memory.max_usage_in_bytes", 0)
        self._cpu_before = int(self._cpu_usage.read_text())
        self._oom_before = self._oom_kills()

    def usage(self) -> Usage:
        """Say what was used since ``begin``."""
        return Usage(
            cpu_seconds=(int(self._cpu_usage.read_text()) - self._cpu_before) / 1e9,
            peak_memory_bytes=int((self._memory / "memory.max_usage_in_bytes").read_text()),
            oom_kills=self._oom_kills() - self._oom_before,
        )

    def _limit_memory(self, memory_bytes: int) -> None:
        """Limit memory, and memory with swap where swap is counted, else use no swap."""
        with_swap = self._memory / "memory.memsw.limit_in_bytes"
        if with_swap.exists():
            _write(with_swap, -1)  # it may never be below the limit without swap
        else:
            _write(self._memory / "memory.swappiness", 0)
        _write(self._memory / "memory.limit_in_bytes", memory_bytes)
        if with_swap.exists():
            _write(with_swap, memory_bytes)

    def _oom_kills(self) -> int:
        return read_counters(self._memory / "memory.oom_control").get("oom_kill", 0)


def _bind(root: Path, name: str, cpu: int) -> None:
    """Give the group one CPU, which no program inside can widen."""
    nodes = (root / "cpuset.mems").read_text().strip()
    parent = root / GROUP
    _write(parent / "cpuset.cpus", (root / "cpuset.cpus").read_text().strip())
    _write(parent / "cpuset.mems", nodes)
    _write(parent / name / "cpuset.cpus", cpu)
    _write(parent / name / "cpuset.mems", nodes)


def _write(path: Path, value: int | str) -> None:
    path.write_text(str(value))
