"""File locks: one supervisor a state folder, one launcher at a time."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loopwright.contracts.failures import UserError

_POLL_SECONDS = 0.05


@contextmanager
def hold(path: Path, *, seconds: float, busy: str) -> Iterator[int]:
    """Hold a lock; gives its descriptor.

    The lock belongs to the open file: a process forked meanwhile holds it too until it ends.

    Args:
        path: the file.
        seconds: longest time to wait for it.
        busy: message of the error when it stays taken.

    Raises:
        UserError: another process holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + seconds
        while not _try(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise UserError(busy)
            time.sleep(_POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Tell whether a process holds the lock."""
    if not path.exists():
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return not _try(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
