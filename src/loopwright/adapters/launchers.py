"""The two ways to make a jail; both give the same one, and one process 1 that waits in it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Protocol

from loopwright.adapters.plans import Plan
from loopwright.contracts.workspaces import MIB, PYTHON

VIEW = Path("/run/user")
"""Where a launcher and its jails in the making see the jails' folder."""
SMALL = "size=32m,nr_inodes=4096,mode=1777"
"""Options of /tmp and /dev/shm."""
MAX_OWN_PROCESSES = 3
"""Most processes of a jail that are ours and not the program's, whichever launcher makes it."""

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/workspace",
    "USER": "jail",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "OMP_NUM_THREADS": "1",
    "SOURCE_DATE_EPOCH": "0",
}
"""Variables of every command, and of an interpreter that waits; a request's own come on top."""

IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are in a root of its own, as images expect it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The parts of one slot that a jail is made of, as the launcher sees them."""

    folder: Path
    """On the host."""
    view: Path
    devices: Path
    entropy: Path
    root_layers: str
    usr_layers: str
    """Empty where the root has its own ``/usr``."""
    packages: tuple[tuple[str, str], ...] = ()
    """Layers and name of each package folder."""
    base: str = ""
    """Folder whose files the workspace begins with; empty for none."""
    uid: int = 0


class Launcher(Protocol):
    """Says how the launcher of a slot is to make one jail."""

    name: str
    num_own_processes: int
    """Processes of a jail that are ours and not the program's, the slot's launcher included."""

    def words(self, place: Place, plan: Plan) -> list[str]:
        """Give the words that follow the options of the workspace."""
        ...


class NativeLauncher:
    """The slot's launcher makes the jail itself."""

    name = "native"
    num_own_processes = 2

    def words(self, place: Place, plan: Plan) -> list[str]:
        """Give the words of ``plan_word`` in launcher.c, and the interpreter to start."""
        return [
            self.name,
            place.root_layers,
            place.usr_layers,
            str(place.devices),
            str(place.entropy),
            str(place.view / "workspace"),
            SMALL,
            str(VIEW / filter_name(plan, "bpf")),
            "1" if plan.has_loopback else "",
            str(len(place.packages)),
            *(word for pair in place.packages for word in pair),
            *warm_command(plan),
        ]


class NsjailLauncher:
    """nsjail makes the jail, from a configuration file."""

    name = "nsjail"
    num_own_processes = MAX_OWN_PROCESSES

    def __init__(self, binary: Path, config: str) -> None:
        """Take nsjail's program and the template of its configuration."""
        self._binary, self._config = binary, Template(config)

    def words(self, place: Place, plan: Plan) -> list[str]:
        """Write the configuration and give nsjail's argument list."""
        path = place.folder / "jail.cfg"
        path.write_text(self._configure(place, plan))
        return [
            self.name,
            *(str(self._binary), "--config", str(place.view / path.name)),
            *("--log_fd", "%L", "--pass_fd", "%C"),
            *(f"--env={name}={value}" for name, value in ENVIRONMENT.items()),
            *("--", "/jinit", "%C", *warm_command(plan)),
        ]

    def _configure(self, place: Place, plan: Plan) -> str:
        layers = [("/", place.root_layers)]
        if place.usr_layers:
            layers.append(("/usr", place.usr_layers))
        return self._config.substitute(
            uid=place.uid,
            no_loopback=str(not plan.has_loopback).lower(),
            layers="\n".join(_overlay(target, lower) for target, lower in layers),
            devices=place.devices,
            entropy=place.entropy,
            small=SMALL,
            workspace=place.view / "workspace",
            packages="\n".join(_package_mounts(place)),
            filter=VIEW / filter_name(plan, "kafel"),
        )


def workspace_options(num_bytes: int, *, max_files: int, uid: int) -> str:
    """Give the mount options of a workspace that holds at most this much."""
    size = math.ceil(num_bytes / MIB) * MIB
    return f"size={size},nr_inodes={max_files},mode=755,uid={uid},gid={uid}"


def warm_command(plan: Plan) -> Sequence[str]:
    """Give the command of the interpreter that waits in the jail; nothing where none does."""
    if not plan.has_python:
        return ()
    return (*PYTHON, "-c", (files("loopwright.adapters") / "warm_python.py").read_text())


def filter_name(plan: Plan, kind: str) -> str:
    """Name the file of the system call policy."""
    return f"seccomp_strict.{kind}" if plan.strict else f"seccomp.{kind}"


def _package_mounts(place: Place) -> list[str]:
    if not place.packages:
        return []
    top = 'mount { dst: "/packages" fstype: "tmpfs" options: "size=64k,mode=755" rw: false }'
    return [top, *(_overlay(f"/packages/{name}", lower) for lower, name in place.packages)]


def _overlay(target: str, layers: str) -> str:
    return (
        f'mount {{ dst: "{target}" fstype: "overlay" options: "lowerdir={layers}" '
        "rw: false nosuid: true nodev: true }"
    )
