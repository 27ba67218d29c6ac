"""Slots: the prepared places in which one jail at a time runs, and what dead owners left of them.

Each slot has a user id of its own on the host, its own device nodes and its own control group;
no two jails share any of them, not even those of other processes on this host.
"""

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from loopwright.adapters.cgroups import (
    Cgroup,
    Hierarchies,
    find_hierarchies,
    remove_group,
    remove_parents,
)
from loopwright.adapters.cgroups_v1 import CgroupV1
from loopwright.adapters.cgroups_v2 import CgroupV2
from loopwright.adapters.collect import MAX_FILES
from loopwright.adapters.host_locks import HostLocks
from loopwright.adapters.jail_files import build_jail_files, make_devices
from loopwright.adapters.mounts import mount_tmpfs, mounts_below, unmount
from loopwright.contracts.failures import SandboxUnavailable

FIRST_UID = 200_000
"""User ids on the host begin here; nothing else may use them."""
MAX_UIDS = 10_000
_instances = itertools.count()


@dataclass(frozen=True, slots=True)
class Slot:
    """One prepared place."""

    folder: Path
    uid: int
    """User and group id of its processes on the host."""
    cgroup: Cgroup

    @property
    def workspace(self) -> Path:
        """Where the workspace of a run is mounted."""
        return self.folder / "workspace"

    def open_workspace(self, num_bytes: int) -> None:
        """Mount an empty workspace of at most this size."""
        options = f"size={num_bytes},nr_inodes={MAX_FILES},mode=755,uid={self.uid},gid={self.uid}"
        mount_tmpfs(self.workspace, options)

    def close_workspace(self) -> None:
        """Take the workspace and all in it away."""
        unmount(self.workspace)


class SlotHouse:
    """The slots of one owner, below a root that several owners may share."""

    def __init__(self, root: Path, *, num_slots: int, deploy: Path) -> None:
        """Clear what dead owners left in ``root`` and prepare the slots.

        Raises:
            SandboxUnavailable: the host cannot run jails.
        """
        self._root = root.resolve()
        self._locks = HostLocks()
        self._hierarchies = find_hierarchies()
        self.slots: list[Slot] = []
        sweep(self._root, self._hierarchies)
        name = f"{os.getpid()}.{next(_instances)}"
        self.folder = self._root / name
        self._made = [path for path in (self._root, *self._root.parents) if not path.exists()]
        self._locks.take(_lock_name(self._root, name))
        try:
            build_jail_files(self.folder, deploy)
            for index in range(num_slots):
                self.slots.append(self._make_slot(index))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Take everything away again."""
        _clear(self.folder, self._hierarchies)
        with suppress(OSError):
            for folder in self._made:
                folder.rmdir()
        self._locks.close()

    def _make_slot(self, index: int) -> Slot:
        uid = self._take_uid()
        folder = self.folder / f"slot{index}"
        folder.mkdir()
        folder.chmod(0o711)
        (folder / "workspace").mkdir()
        make_devices(folder / "dev")
        version = CgroupV2 if self._hierarchies.version == 2 else CgroupV1
        cpus = sorted(os.sched_getaffinity(0))
        cgroup = version(
            self._hierarchies,
            f"{_group_prefix(self.folder)}{index}",
            cpu=cpus[index % len(cpus)],
        )
        return Slot(folder=folder, uid=uid, cgroup=cgroup)

    def _take_uid(self) -> int:
        for uid in range(FIRST_UID, FIRST_UID + MAX_UIDS):
            if self._locks.take(f"uid/{uid}"):
                _kill_processes(uid)
                return uid
        raise SandboxUnavailable(f"all {MAX_UIDS} user ids from {FIRST_UID} are taken")


def sweep(root: Path, hierarchies: Hierarchies) -> None:
    """Take away what owners that no longer live left below ``root``."""
    locks = HostLocks()
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        name = _lock_name(root, folder.name)
        if locks.take(name):
            _clear(folder, hierarchies)
            locks.give_back(name)


def _clear(folder: Path, hierarchies: Hierarchies) -> None:
    """Remove processes and groups first: they hold the mounts."""
    for name in hierarchies.names(_group_prefix(folder)):
        for group in hierarchies.folders(name):
            remove_group(group)
    remove_parents(hierarchies)
    for point in mounts_below(folder):
        unmount(point)
    if folder.is_dir():
        folder.rmdir()


def _lock_name(root: Path, name: str) -> str:
    return f"jails/{_digest(root)}/{name}"


def _group_prefix(folder: Path) -> str:
    return f"{_digest(folder.parent)}.{folder.name}-"


def _digest(root: Path) -> str:
    return sha256(os.fsencode(root)).hexdigest()[:12]


def _kill_processes(uid: int) -> None:
    """Kill what an owner that died left under a user id that is ours now."""
    for pid in _processes(uid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _processes(uid: int) -> Iterator[int]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(FileNotFoundError):
                if entry.stat().st_uid == uid:
                    yield int(entry.name)
