"""Wall seconds of the phases of a workflow, on the workflow's own clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from temporalio import workflow


class Stopwatch:
    """Adds up the seconds of named phases, and of everything since it was made."""

    def __init__(self) -> None:
        self._start = workflow.now()
        self._seconds: dict[str, float] = {}
        self._running: dict[str, datetime] = {}

    @contextmanager
    def timing(self, phase: str) -> Iterator[None]:
        """Count the seconds of the block towards ``phase``.

        A workflow that is evicted leaves the block too, where it has no clock any more.
        """
        self._running[phase] = workflow.now()
        try:
            yield
        finally:
            if workflow.in_workflow():
                self._seconds[phase] = round(self.spent(phase), 3)
                del self._running[phase]

    def spent(self, phase: str) -> float:
        """Give the seconds of a phase so far."""
        start = self._running.get(phase)
        running = (workflow.now() - start).total_seconds() if start else 0.0
        return self._seconds.get(phase, 0.0) + running

    def seconds(self) -> dict[str, float]:
        """Give the seconds by phase, and in ``total`` all of them."""
        total = (workflow.now() - self._start).total_seconds()
        return {**self._seconds, "total": round(total, 3)}
