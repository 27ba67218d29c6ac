"""How much memory is left: what the machine has, within the limits of the control groups around us.

A container sees the memory of its host; its limit is told by its control group alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from loopwright.adapters.cgroups import read_counters


@dataclass(frozen=True, slots=True)
class _Files:
    """What one version of control groups calls its files and counters."""

    limit: str
    usage: str
    reclaimable: tuple[str, ...]
    """Counters of cached files, which are used but given up when memory is asked for."""


_V1 = _Files(
    limit="memory.limit_in_bytes",
    usage="memory.usage_in_bytes",
    reclaimable=("total_active_file", "total_inactive_file"),
)
_V2 = _Files(
    limit="memory.max",
    usage="memory.current",
    reclaimable=("active_file", "inactive_file"),
)


def available_bytes() -> int:
    """Give the memory that new programs can have without swapping."""
    own = Path("/proc/self")
    groups = left_in_groups((own / "mountinfo").read_text(), (own / "cgroup").read_text())
    return max(0, min(_left_on_machine(), *groups))


def _left_on_machine() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("MemAvailable:"))
    return int(line.split()[1]) << 10


def left_in_groups(mountinfo: str, membership: str) -> list[int]:
    """Give what each limited group around a process leaves it, in bytes; empty without limits.

    Args:
        mountinfo: the process's ``mountinfo``.
        membership: its ``cgroup``.
    """
    paths = _memory_paths(membership)
    found: list[int] = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        root, point = before.split()[3:5]
        files = _V2 if kind == "cgroup2" else _V1
        if kind in paths and (kind == "cgroup2" or "memory" in options.split(",")):
            found += _left_around(Path(point), root, paths[kind], files)
    return found


def _memory_paths(membership: str) -> dict[str, PurePosixPath]:
    """Give the group of a process in each hierarchy that may limit memory, by type of mount."""
    paths = {}
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            paths["cgroup2"] = PurePosixPath(path)
        elif "memory" in controllers.split(","):
            paths["cgroup"] = PurePosixPath(path)
    return paths


def _left_around(point: Path, root: str, path: PurePosixPath, files: _Files) -> Iterator[int]:
    """Go from a group up to the top of what is mounted: each of them may have a limit."""
    # A group outside of what is mounted here belongs to the host; ours is at the mount point.
    inner = path.relative_to(root) if path.is_relative_to(root) else PurePosixPath()
    folder = point / inner
    for group in (folder, *folder.parents):
        if group.is_relative_to(point) and (left := _left(group, files)) is not None:
            yield left


def _left(group: Path, files: _Files) -> int | None:
    try:
        limit = (group / files.limit).read_text().strip()
        if limit == "max":
            return None
        counters = read_counters(group / "memory.stat")
        used = int((group / files.usage).read_text())
    except FileNotFoundError:
        return None
    return int(limit) - used + sum(counters.get(name, 0) for name in files.reclaimable)
