"""A measured ratio and the bound it must keep."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """Cost of something of ours relative to its reference, both measured in the same run."""

    name: str
    ours_seconds: float
    reference_seconds: float
    at_most: float
    """Largest ratio that meets the target."""

    @property
    def value(self) -> float:
        """How many times the reference's time ours takes."""
        return self.ours_seconds / self.reference_seconds

    @property
    def is_met(self) -> bool:
        """Whether the target is met."""
        return self.value <= self.at_most

    def __str__(self) -> str:
        """Write the ratio as one line of the table."""
        word = "ok" if self.is_met else "MISSED"
        return (
            f"{self.name:<42} {self.value:6.2f}x  (at most {self.at_most:.2f}x)  "
            f"{self.ours_seconds * 1e3:9.2f} ms against {self.reference_seconds * 1e3:9.2f} ms  "
            f"{word}"
        )


def median_seconds(
    ours: Callable[[], object], reference: Callable[[], object], *, repeats: int
) -> tuple[float, float]:
    """Time both in turns, so that a busy machine slows both; give the two medians.

    One run of each before the first measurement fills the caches.
    """
    samples = [(_seconds(ours), _seconds(reference)) for _ in range(repeats + 1)][1:]
    ours_samples, reference_samples = zip(*samples, strict=True)
    return statistics.median(ours_samples), statistics.median(reference_samples)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
