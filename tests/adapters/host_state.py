"""What jails could leave on this host, counted for one owner of jails."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.slot_process import SlotProcess


@dataclass(frozen=True, slots=True)
class HostState:
    """Counts that are equal before and after runs."""

    processes: int
    """Of the slots' user ids and below their launchers, zombies included."""
    mounts: int
    """On the host and in the launchers' own namespaces."""
    groups: int
    descriptors: int
    threads: int
    folders: int


def host_state(jail: LocalJail, root: Path) -> HostState:
    """Count while no command runs and no jail waits."""
    slots = jail._house.slots
    for slot in slots:
        end_jail(slot.process)
    launchers = [slot.process.pid for slot in slots if slot.process.pid is not None]
    uids = {slot.uid for slot in slots if slot.uid}
    owned = [pid for pid, uid, parent in _processes() if uid in uids or parent in launchers]
    mounts = Path("/proc/self/mountinfo").read_text().count(f" {root}")
    for pid in launchers:
        mounts += Path(f"/proc/{pid}/mountinfo").read_text().count(" /run/user")
    groups = Path("/sys/fs/cgroup").glob(f"*/loopwright/*.{os.getpid()}.*")
    return HostState(
        processes=len(owned),
        mounts=mounts,
        groups=len(list(groups)),
        descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
        threads=threading.active_count(),
        folders=sum(path.is_dir() for path in root.rglob("*")),
    )


def end_jail(process: SlotProcess) -> None:
    """End the jail that waits, and wait until nothing of it is left."""
    if process.jail is None:
        return
    waiting = process.wait_until_ready()
    process.kill()
    while not waiting.is_gone:
        process.read_message()
    process.discard()


def _processes() -> list[tuple[int, int, int]]:
    """List process id, user id and parent of all."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "status").read_text()
        except OSError:
            continue
        uid, parent = (int(words.split(name)[1].split()[0]) for name in ("\nUid:", "\nPPid:"))
        found.append((int(entry.name), uid, parent))
    return found
