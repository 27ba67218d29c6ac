"""A control group in the unified hierarchy, version 2."""

from pathlib import Path

from loopwright.adapters.cgroups import GROUP, Cgroup, Hierarchies, Usage, make_group, read_counters
from loopwright.contracts.failures import SandboxUnavailable


class CgroupV2(Cgroup):
    """One slot's group, made anew for each run: its peak of memory cannot be reset."""

    def __init__(self, hierarchies: Hierarchies, name: str, *, cpu: int) -> None:
        """Hand our parent the controllers.

        Raises:
            SandboxUnavailable: the host does not delegate them.
        """
        self._root = hierarchies.roots["memory"]
        self._folder = self._root / GROUP / name
        self._cpu = cpu
        self._controllers = sorted(hierarchies.roots)
        make_group(self._folder)
        for parent in (self._root, self._root / GROUP):
            self._delegate(parent)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Name its directory."""
        return (self._folder,)

    def begin(self, *, memory_bytes: int, max_processes: int) -> None:
        """Set the limits of the next run and start counting anew."""
        self.remove()
        make_group(self._folder)
        self._write("memory.max", memory_bytes)
        self._write_if_there("memory.swap.max", 0)
        self._write("pids.max", max_processes)
        self._write("cpu.max", "100000 100000")
        self._write_if_there("cpuset.cpus", self._cpu)

    def usage(self) -> Usage:
        """Say what was used since ``begin``."""
        peak = self._folder / "memory.peak"
        used = peak if peak.exists() else self._folder / "memory.current"
        return Usage(
            cpu_seconds=read_counters(self._folder / "cpu.stat")["usage_usec"] / 1e6,
            peak_memory_bytes=int(used.read_text()),
            oom_kills=read_counters(self._folder / "memory.events").get("oom_kill", 0),
        )

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
        (self._folder / file).write_text(str(value))

    def _write_if_there(self, file: str, value: int | str) -> None:
        if (self._folder / file).exists():
            self._write(file, value)
