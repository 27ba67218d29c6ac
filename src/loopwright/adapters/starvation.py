"""Tells a command that took too long from one that the host gave no processor to."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_SHARE = 0.5


def is_starved(pids: Iterable[int], *, cpu_seconds: float, wall_seconds: float) -> bool:
    """Say whether a command waited for a processor most of its time, and not for its own processes.

    A program that crowds its one CPU itself has used that CPU whole; one that sleeps never waited.
    """
    if cpu_seconds > _SHARE * wall_seconds:
        return False
    return max(map(_waited_seconds, pids), default=0.0) > _SHARE * wall_seconds


def _waited_seconds(pid: int) -> float:
    """Read how long a process was ready to run and did not."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0
