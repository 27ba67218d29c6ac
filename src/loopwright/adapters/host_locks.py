"""Names that one process of this host holds at a time, and that its death gives back.

A name is an abstract socket address: taking it is atomic, and nothing is left on any disk.
"""

import socket


class HostLocks:
    """The names held by one owner."""

    def __init__(self) -> None:
        self._held: dict[str, socket.socket] = {}

    def take(self, name: str) -> bool:
        """Take a name unless somebody holds it; say whether it is ours now."""
        taken = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            taken.bind(f"\0loopwright/{name}")
        except OSError:
            taken.close()
            return False
        self._held[name] = taken
        return True

    def give_back(self, name: str) -> None:
        """Give one name back."""
        self._held.pop(name).close()

    def close(self) -> None:
        """Give every name back."""
        for name in list(self._held):
            self.give_back(name)
