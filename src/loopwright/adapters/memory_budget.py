"""Lets commands in while the sum of their memory limits fits the host, in the order they came."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.adapters.host_memory import available_bytes
from loopwright.contracts.failures import SandboxUnavailable

_SHARE = 0.8
"""Of the memory that is left when jails are opened."""


class MemoryBudget:
    """The memory that commands may have at once. Safe from many threads."""

    def __init__(self, num_bytes: int) -> None:
        """Begin with nothing taken."""
        self._num_bytes, self._free = num_bytes, num_bytes
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @property
    def num_waiting(self) -> int:
        """Say how many commands wait to be let in."""
        return len(self._waiting)

    @contextmanager
    def reserve(self, num_bytes: int) -> Iterator[None]:
        """Wait until this much is free, and hold it; nobody who came later goes first.

        Raises:
            SandboxUnavailable: it is more than there is.
        """
        if num_bytes > self._num_bytes:
            raise SandboxUnavailable(
                f"a command may use {num_bytes} bytes of memory, and this host has "
                f"{self._num_bytes} for all commands together; lower limits.memory_bytes"
            )
        place = object()
        with self._changed:
            self._waiting.append(place)
            self._changed.wait_for(lambda: self._waiting[0] is place and self._free >= num_bytes)
            self._waiting.popleft()
            self._free -= num_bytes
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += num_bytes
                self._changed.notify_all()


def host_budget_bytes() -> int:
    """Say how much of the memory that is left on this host commands may take together."""
    return int(available_bytes() * _SHARE)
