"""Wall seconds of the phases of a workflow, on the workflow's own clock."""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio import workflow


class Stopwatch:
    """Adds up the seconds of named phases, and of everything since it was made."""

    def __init__(self) -> None:
        self._start = workflow.now()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def timing(self, phase: str) -> Iterator[None]:
        """Count the seconds of the block towards ``phase``."""
        start = workflow.now()
        try:
            yield
        finally:
            spent = (workflow.now() - start).total_seconds()
            self._seconds[phase] = round(self._seconds.get(phase, 0.0) + spent, 3)

    def seconds(self) -> dict[str, float]:
        """Give the seconds by phase, and in ``total`` all of them."""
        total = (workflow.now() - self._start).total_seconds()
        return {**self._seconds, "total": round(total, 3)}
