"""Where the jails of a platform are on its host, and how that is cleared when it is gone."""

import os
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from loopwright.adapters.cgroups import Hierarchies, find_hierarchies
from loopwright.adapters.slots import sweep
from loopwright.contracts.failures import SandboxUnavailable

JAILS = Path("/run/loopwright")


def jail_root(state_dir: Path) -> Path:
    """Name the folder of a state folder's slots and mounts, which a jail's uid can reach."""
    return JAILS / sha256(str(state_dir.resolve()).encode()).hexdigest()[:12]


def jails_of_commands() -> Path:
    """Name the folder of the jails of single commands of this user."""
    if os.geteuid() == 0:
        return JAILS / "cli"
    return Path(tempfile.gettempdir()) / f"loopwright-{os.geteuid()}" / "cli"


def clear(root: Path) -> None:
    """Take away what dead owners left below ``root``, and ``root`` itself when nobody is left.

    Raises:
        SandboxUnavailable: this process may not, or processes in a jail cannot be ended.
    """
    if not root.is_dir():
        return
    try:
        sweep(root, _hierarchies())
    except OSError as error:
        raise SandboxUnavailable(
            f"what jails left in {root} cannot be taken away: {error}; do so as the user who "
            f"started the platform"
        ) from error
    with suppress(OSError):
        root.rmdir()
        JAILS.rmdir()


def _hierarchies() -> Hierarchies | None:
    """Find the control groups; where there are none, no jail has any."""
    try:
        return find_hierarchies()
    except SandboxUnavailable:
        return None
