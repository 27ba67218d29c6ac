"""Processes as Linux shows them: identity that survives reuse of ids, and whole sessions."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loopwright.contracts.base import Contract

_PROC = Path("/proc")
_SESSION, _START_TICKS = 3, 19
"""Positions in /proc/PID/stat, counted from the state behind the name."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ProcessId(Contract):
    """A process, told from a later one with the same number by its start."""

    pid: int
    start_ticks: int
    """Clock ticks from boot to its start."""
    boot: str
    """Id of the boot that the ticks count from."""


def identify(pid: int) -> ProcessId | None:
    """Identify a running process; None where there is none."""
    fields = _stat(pid)
    if fields is None or fields[0] == "Z":
        return None
    return ProcessId(pid=pid, start_ticks=int(fields[_START_TICKS]), boot=_boot_id())


def is_alive(process: ProcessId) -> bool:
    """Tell whether this very process still runs."""
    return identify(process.pid) == process


def kill_session(leader: ProcessId, *, seconds: float = 10.0) -> int:
    """Kill every process of the session that ``leader`` began; give their number.

    Nothing is killed where the leader's id has gone to another process, or the machine has been
    started anew.
    """
    deadline = time.monotonic() + seconds
    killed: set[int] = set()
    while members := list(_members(leader)):
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(members)
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return len(killed)


def yield_processor(leader: ProcessId) -> None:
    """Let every process of a session run only while no other wants the processor."""
    for pid in _members(leader):
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in (_PROC / str(pid) / "task").iterdir():
                os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when the thread that forked it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _members(leader: ProcessId) -> Iterator[int]:
    if leader.boot != _boot_id():
        return
    now = _stat(leader.pid)
    if now is not None and int(now[_START_TICKS]) != leader.start_ticks:
        return
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        fields = _stat(int(entry.name))
        if fields is None or fields[0] == "Z" or int(fields[_SESSION]) != leader.pid:
            continue
        if int(fields[_START_TICKS]) >= leader.start_ticks:
            yield int(entry.name)


def _stat(pid: int) -> list[str] | None:
    """Give the fields behind the name, which may itself hold spaces and parentheses."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
