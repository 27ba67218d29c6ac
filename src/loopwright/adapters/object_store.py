"""Fake of the object store, for unit tests."""

import threading
from collections.abc import Iterable

from loopwright.core.protocols import ObjectStore


class InMemoryObjectStore(ObjectStore):
    """An object store in a dictionary."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        """Content by key; tests may damage it."""
        self._lock = threading.Lock()

    def put(self, key: str, data: bytes) -> None:
        """Store ``data``."""
        with self._lock:
            self.objects[key] = bytes(data)

    def get(self, key: str) -> bytes:
        """Fetch an object whole."""
        with self._lock:
            return self.objects[key]

    def list_keys(self, prefix: str) -> list[str]:
        """List every key that starts with ``prefix``."""
        with self._lock:
            return sorted(key for key in self.objects if key.startswith(prefix))

    def list_folders(self, prefix: str) -> list[str]:
        """List what stands between ``prefix`` and the next ``/`` of keys."""
        rests = (key.removeprefix(prefix) for key in self.list_keys(prefix))
        return sorted({rest.partition("/")[0] for rest in rests if "/" in rest})

    def exists(self, key: str) -> bool:
        """Tell whether an object of this key is there."""
        with self._lock:
            return key in self.objects

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        with self._lock:
            for key in keys:
                self.objects.pop(key, None)
