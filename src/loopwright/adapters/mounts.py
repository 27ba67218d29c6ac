"""Mounting and unmounting of the folders that jails use."""

import ctypes
import os
import re
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_MS_NOSUID, _MS_NODEV = 2, 4
_MNT_DETACH = 2


def mount_tmpfs(folder: Path, options: str, *, has_devices: bool = False) -> None:
    """Mount an empty file system in memory over ``folder``.

    Raises:
        OSError: the host refuses.
    """
    flags = _MS_NOSUID | (0 if has_devices else _MS_NODEV)
    if _libc.mount(b"loopwright", os.fsencode(folder), b"tmpfs", flags, options.encode()):
        raise OSError(ctypes.get_errno(), f"cannot mount a tmpfs on {folder} ({options})")


def unmount(folder: Path) -> None:
    """Take the file system at ``folder`` away, even if something still holds it.

    Raises:
        OSError: the host refuses.
    """
    if _libc.umount2(os.fsencode(folder), _MNT_DETACH):
        raise OSError(ctypes.get_errno(), f"cannot unmount {folder}")


def mounts_below(folder: Path) -> list[Path]:
    """List what is mounted at and below ``folder``, the innermost first."""
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    points = [Path(os.fsdecode(_unescape(line.split()[4]))) for line in lines]
    return [point for point in reversed(points) if point.is_relative_to(folder)]


def _unescape(field: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field)
