"""The folder that jails are made of: their root file system, the helpers, and the policy."""

import os
import shutil
import stat
from importlib.resources import files
from pathlib import Path

from loopwright.adapters.helpers import helper_folder
from loopwright.adapters.mounts import mount_tmpfs
from loopwright.contracts.failures import SandboxUnavailable

DEPLOY = Path(str(files("loopwright"))) / "deploy" / "nsjail"
"""Where configuration, policy and sources of the helpers are."""
JAIL_ID = 1000
"""User and group inside."""

_MOUNT_POINTS = ("nsjail.0.root", "nsjail.0.tmp")
_POINTS = ("proc", "dev", "dev/shm", "tmp", "workspace", "packages")
_FOLDERS = ("usr", "etc")
_HELPERS = {"jinit": "points", "jstrict.so": "points", "launcher": "."}
"""Layer in which each program is."""
_TARGETS = ("dev/null", "dev/zero", "dev/urandom", "dev/random")
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_DEVICE_LINKS = {
    "dev/fd": "/proc/self/fd",
    "dev/stdin": "/proc/self/fd/0",
    "dev/stdout": "/proc/self/fd/1",
    "dev/stderr": "/proc/self/fd/2",
}
_ETC = {
    "passwd": f"jail:x:{JAIL_ID}:{JAIL_ID}::/workspace:/bin/sh\n",
    "group": f"jail:x:{JAIL_ID}:\n",
    "hosts": "127.0.0.1 localhost jail\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_DEVICES = {"null": 3, "zero": 5, "urandom": 9}
"""Minor numbers of memory devices, major 1."""


def build_jail_files(folder: Path, deploy: Path = DEPLOY) -> None:
    """Mount ``folder`` in memory and fill it; unmounting it takes everything away.

    Raises:
        SandboxUnavailable: a helper cannot be compiled, or the host refuses the mount.
    """
    try:
        programs = helper_folder(deploy)
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir()
        if os.geteuid() == 0:
            mount_tmpfs(folder, "size=64m,mode=755", has_devices=True)
        for name in _MOUNT_POINTS:
            _make_folder(folder / name)
        _build_mount_points(folder / "points")
        _build_skeleton(folder / "skeleton")
        for name, place in _HELPERS.items():
            shutil.copyfile(programs / name, folder / place / name)
            (folder / place / name).chmod(0o755)
        _make_folder(folder / "empty")
        for is_strict, name in ((False, "seccomp"), (True, "seccomp_strict")):
            (folder / f"{name}.kafel").write_text(policy_text(deploy, is_strict=is_strict))
            shutil.copyfile(deploy / f"{name}.bpf", folder / f"{name}.bpf")
    except OSError as error:
        raise SandboxUnavailable(f"cannot prepare jails in {folder}: {error}") from error
    for layer in ("points", "skeleton"):
        _forget_times(folder / layer)


def policy_text(deploy: Path = DEPLOY, *, is_strict: bool) -> str:
    """Give the system call policy; the strict one leaves the kernel's entropy out."""
    text = (deploy / "seccomp.kafel").read_text()
    return text.replace(" getrandom,", "") if is_strict else text


def make_devices(folder: Path) -> None:
    """Create device nodes; each slot has its own, since locks on a shared one would be seen."""
    _make_folder(folder)
    for name, minor in _DEVICES.items():
        os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        (folder / name).chmod(0o666)


def _build_mount_points(layer: Path) -> None:
    """Build the layer over every root: what is mounted on is what it should be, in any image."""
    for name in ("", *_POINTS):
        _make_folder(layer / name)
    for name in _TARGETS:
        _write(layer / name, b"")
    for name, target in _DEVICE_LINKS.items():
        (layer / name).symlink_to(target)


def _build_skeleton(root: Path) -> None:
    """Build what the host's ``/usr`` needs around it."""
    for name in ("", *_FOLDERS):
        _make_folder(root / name)
    for name, target in _LINKS.items():
        (root / name).symlink_to(target)
    for name, text in _ETC.items():
        _write(root / "etc" / name, text.encode())
    cache = Path("/etc/ld.so.cache")
    if cache.exists():
        _write(root / "etc" / cache.name, cache.read_bytes())
    alternatives = Path("/etc/alternatives")
    if alternatives.is_dir():
        shutil.copytree(alternatives, root / "etc" / alternatives.name, symlinks=True)


def _make_folder(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o644)


def _forget_times(folder: Path) -> None:
    """Make the jail look the same whenever it was prepared."""
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            os.utime(Path(parent) / name, (0, 0), follow_symlinks=False)
    os.utime(folder, (0, 0))
