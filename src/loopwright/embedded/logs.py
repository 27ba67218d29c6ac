"""Logs of child processes: one generation is kept, and none grows without bound."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

_MAX_BYTES = 64 * 2**20
_SECONDS_BETWEEN_LOOKS = 30.0
_TAIL_BYTES = 8192


class LogKeeper:
    """Keeps the logs of one supervisor's children in bounds."""

    def __init__(self, paths: Iterable[Path], *, max_bytes: int = _MAX_BYTES) -> None:
        """Look after the logs at ``paths``."""
        self._paths = tuple(paths)
        self._max_bytes = max_bytes
        self._next_look = 0.0

    def rotate(self) -> None:
        """Set each log aside as ``NAME.log.1``."""
        for path in self._paths:
            if path.exists():
                path.replace(previous(path))

    def shorten(self, now: float) -> None:
        """Set the content of long logs aside; processes write on into the emptied file."""
        if now < self._next_look:
            return
        self._next_look = now + _SECONDS_BETWEEN_LOOKS
        for path in self._paths:
            if path.exists() and path.stat().st_size > self._max_bytes:
                shutil.copyfile(path, previous(path))
                os.truncate(path, 0)


def previous(path: Path) -> Path:
    """Name the log set aside."""
    return path.with_name(path.name + ".1")


def last_lines(path: Path, *, num_lines: int = 15) -> str:
    """Give the end of a log, indented; says so where there is none."""
    if not path.exists():
        return "  (no log)"
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = log.read().decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()][-num_lines:]
    return "\n".join(f"  {line}" for line in lines) or "  (empty)"
