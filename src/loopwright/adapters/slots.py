"""Slots: the prepared places in which one jail at a time runs, and what dead owners left of them.

Each slot has a user id of its own on the host, its own device nodes and its own control group;
no two jails share any of them, not even those of other processes on this host. A resident process
makes its jails before they are needed.
"""

import itertools
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
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
from loopwright.adapters.launchers import Launcher, workspace_options
from loopwright.adapters.mounts import mounts_below, unmount
from loopwright.adapters.places import Places
from loopwright.adapters.plans import Plan
from loopwright.adapters.root_store import RootStore
from loopwright.adapters.slot_process import SlotProcess, launcher_command
from loopwright.adapters.starvation import is_starved
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.core.protocols import Blobs

FIRST_UID = 200_000
"""User ids on the host begin here; nothing else may use them."""
MAX_UIDS = 10_000
_WORKSPACE_POINTS = ("workspace", "base", "changes")
_EMPTY_SECONDS = 20.0
_instances = itertools.count()


@dataclass(slots=True)
class Slot:
    """One prepared place."""

    folder: Path
    uid: int
    """User and group id of its processes, as its launcher sees it."""
    cgroup: Cgroup | None
    """None where control groups cannot be had."""
    process: SlotProcess
    launcher: Launcher
    places: Places
    _told: tuple[Plan, list[str]] | None = field(default=None, init=False)
    """The plan that ``places`` holds all parts of, and how to make a jail of it."""

    @property
    def owner(self) -> int:
        """User id of its processes on the host."""
        return self.places.owner

    def close(self) -> None:
        """End its launcher, and with it its jail."""
        self.process.close()
        self._told = None
        self.places.close()

    def is_starved(self, wall_seconds: float) -> bool:
        """Say whether the host kept the running command from the processor for so long."""
        if self.cgroup is None:
            return False
        pids = [pid for pid in self.cgroup.pids if pid != self.process.pid]
        cpu_seconds = self.cgroup.usage().cpu_seconds
        return is_starved(pids, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)

    def require(self, plan: Plan) -> None:
        """Have a jail of this plan in the making, if the one that waits is of another."""
        if self.process.plan != plan:
            self.process.discard()
            self._prepare(plan)

    def renew(self, plan: Plan) -> None:
        """Let go of the used jail, and have the next one made meanwhile."""
        self.process.discard()
        self._prepare(plan)

    def reset(self) -> None:
        """Begin anew after a failure: nothing of the jail that failed is kept, or still runs.

        Raises:
            SandboxUnavailable: a process of it cannot be ended.
        """
        self.close()
        if self.cgroup is not None:
            _empty(self.cgroup)

    def _prepare(self, plan: Plan) -> None:
        if self._told is None or self._told[0] != plan:
            self._told = None
            self._told = plan, self._words(plan)
        self.process.prepare(*self._told)

    def _words(self, plan: Plan) -> list[str]:
        place = self.places.make(plan)
        options = workspace_options(plan.disk_bytes, max_files=MAX_FILES, uid=self.uid)
        workspace = [str(place.view), options, place.base]
        return [*workspace, *self.launcher.words(place, plan)]


class SlotHouse:
    """The slots of one owner, below a root that several owners may share."""

    def __init__(
        self,
        root: Path,
        *,
        num_slots: int,
        launcher: Launcher,
        deploy: Path,
        may_be_degraded: bool,
        roots: RootStore | None,
        blobs: Blobs | None,
    ) -> None:
        """Clear what dead owners left in ``root`` and prepare the slots.

        Raises:
            SandboxUnavailable: the host cannot run jails.
        """
        self._root, self._launcher = root.resolve(), launcher
        self._roots, self._blobs = roots, blobs
        self._locks = HostLocks()
        self._hierarchies = _find_hierarchies(may_be_degraded)
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
        for slot in self.slots:
            slot.close()
        _clear(self.folder, self._hierarchies)
        with suppress(OSError):
            for folder in self._made:
                folder.rmdir()
        self._locks.close()

    def _make_slot(self, index: int) -> Slot:
        uid = self._take_uid() if is_root() else 0
        folder = self.folder / f"slot{index}"
        folder.mkdir()
        folder.chmod(0o711)
        for point in _WORKSPACE_POINTS:
            (folder / point).mkdir()
        if is_root():
            make_devices(folder / "dev")
        cgroup = self._make_cgroup(index)
        command = launcher_command(
            self.folder / "launcher",
            self.folder,
            uid=uid,
            procs_files=cgroup.procs_files if cgroup else (),
        )
        places = Places(folder, uid, roots=self._roots, blobs=self._blobs)
        return Slot(folder, uid, cgroup, SlotProcess(command), self._launcher, places)

    def _make_cgroup(self, index: int) -> Cgroup | None:
        if self._hierarchies is None:
            return None
        version = CgroupV2 if self._hierarchies.version == 2 else CgroupV1
        cpus = sorted(os.sched_getaffinity(0))
        name = f"{_group_prefix(self.folder)}{index}"
        return version(self._hierarchies, name, cpu=cpus[index % len(cpus)])

    def _take_uid(self) -> int:
        for uid in range(FIRST_UID, FIRST_UID + MAX_UIDS):
            if self._locks.take(f"uid/{uid}"):
                _kill_processes(uid)
                return uid
        raise SandboxUnavailable(f"all {MAX_UIDS} user ids from {FIRST_UID} are taken")


def is_root() -> bool:
    """Say whether this process may give each slot a user id of its own."""
    return os.geteuid() == 0


def _find_hierarchies(may_be_degraded: bool) -> Hierarchies | None:
    """Find the control groups; without them jails are refused, unless less was asked for."""
    try:
        if not is_root():
            raise SandboxUnavailable("jails with all their limits need root")
        return find_hierarchies()
    except SandboxUnavailable as error:
        if may_be_degraded:
            return None
        raise SandboxUnavailable(
            f"{error}; or set LOOPWRIGHT_SANDBOX_DEGRADED=1 (`loopwright sandbox run --degraded`) "
            "for jails that limit memory and CPU time for each process only"
        ) from error


def jails_name(root: Path) -> str:
    """Give the word that locks and control groups of all jails below ``root`` begin with."""
    return sha256(os.fsencode(root)).hexdigest()[:12]


def sweep(root: Path, hierarchies: Hierarchies | None) -> None:
    """Take away what owners that no longer live left below ``root``."""
    locks = HostLocks()
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        name = _lock_name(root, folder.name)
        if locks.take(name):
            _clear(folder, hierarchies)
            locks.give_back(name)


def _clear(folder: Path, hierarchies: Hierarchies | None) -> None:
    """Remove processes and groups first: they hold the mounts."""
    if hierarchies is not None:
        for name in hierarchies.names(_group_prefix(folder)):
            for group in hierarchies.folders(name):
                remove_group(group)
        remove_parents(hierarchies)
    for point in mounts_below(folder):
        unmount(point)
    shutil.rmtree(folder, ignore_errors=True)


def _lock_name(root: Path, name: str) -> str:
    return f"jails/{jails_name(root)}/{name}"


def _group_prefix(folder: Path) -> str:
    return f"{jails_name(folder.parent)}.{folder.name}-"


def _empty(cgroup: Cgroup) -> None:
    """Kill what outlived its launcher, and wait until it is gone."""
    deadline = time.monotonic() + _EMPTY_SECONDS
    while pids := cgroup.pids:
        if time.monotonic() > deadline:
            raise SandboxUnavailable(f"processes {pids} of a jail do not end")
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


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
