"""What a platform could leave behind on its host, and counts of it."""

import os
from collections.abc import Iterator
from pathlib import Path

from loopwright.adapters.cgroups import find_hierarchies
from loopwright.adapters.jail_roots import jail_root
from loopwright.adapters.mounts import mounts_below
from loopwright.adapters.slots import jails_name

_UNFINISHED = "unfinished-"


def processes_of(state: Path) -> list[int]:
    """List the processes that were told of the state folder, or run in a jail of it."""
    words = (os.fsencode(state), os.fsencode(jail_root(state)))
    return [pid for pid, told in _told() if any(word in told for word in words)]


def mounts_of(state: Path) -> list[Path]:
    """List what is mounted for its jails."""
    return mounts_below(jail_root(state))


def groups_of(state: Path) -> set[str]:
    """List the control groups of its jails."""
    return find_hierarchies().names(f"{jails_name(jail_root(state))}.")


def folders_of(state: Path, temporary: Path) -> list[Path]:
    """List the folders of its jails, what never became whole, and what is left of ``temporary``."""
    jails = [path for path in (jail_root(state),) if path.exists()]
    return [*jails, *state.rglob(f"{_UNFINISHED}*"), *temporary.iterdir()]


def _told() -> Iterator[tuple[int, bytes]]:
    """Give command line and environment of every other process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                yield (
                    int(entry.name),
                    b"".join((entry / name).read_bytes() for name in ("cmdline", "environ")),
                )
            except OSError:
                continue
