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
        self._waiting: deque[_Ticket] = deque()
        self._lock = threading.Lock()

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
        ticket = _Ticket(num_bytes)
        with self._lock:
            self._waiting.append(ticket)
            self._let_in()
        try:
            ticket.is_in.wait()
            yield
        finally:
            with self._lock:
                if ticket.is_in.is_set():
                    self._free += num_bytes
                else:  # interrupted while it waited
                    self._waiting.remove(ticket)
                self._let_in()

    def _let_in(self) -> None:
        """Wake those whose turn it is, and nobody else."""
        while self._waiting and self._waiting[0].num_bytes <= self._free:
            ticket = self._waiting.popleft()
            self._free -= ticket.num_bytes
            ticket.is_in.set()


class _Ticket:
    """One command that waits, and then is in."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self.is_in = threading.Event()


def host_budget_bytes() -> int:
    """Say how much of the memory that is left on this host commands may take together."""
    return int(available_bytes() * _SHARE)
