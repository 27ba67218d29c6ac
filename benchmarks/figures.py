"""What a benchmark tells: one figure a line, with the target it must keep where it has one."""

from dataclasses import dataclass
from typing import Protocol

QUIET_TRUE_SECONDS = 0.85e-3
"""Time of ``/bin/true`` as a plain process where targets in milliseconds are exact."""


class Figure(Protocol):
    """One line of the table."""

    @property
    def is_met(self) -> bool:
        """Whether the target is met."""
        ...


@dataclass(frozen=True, slots=True)
class Ratio:
    """Time of something relative to its reference, both measured in the same run."""

    name: str
    ours_seconds: float
    reference_seconds: float
    at_most: float | None = None
    """Largest ratio that meets the target; None for a comparison."""

    @property
    def value(self) -> float:
        """How many times the reference's time ours takes."""
        return self.ours_seconds / self.reference_seconds

    @property
    def is_met(self) -> bool:
        """Whether the target is met."""
        return self.at_most is None or self.value <= self.at_most

    def __str__(self) -> str:
        """Write the ratio as one line of the table."""
        target = f"at most {self.at_most:.2f}x" if self.at_most is not None else ""
        times = f"{_ms(self.ours_seconds)} against {_ms(self.reference_seconds)}"
        return _line(self.name, f"{self.value:.2f}x", target, times, self.is_met)


@dataclass(frozen=True, slots=True)
class Share:
    """Runs a second relative to the reference's, both measured in the same run."""

    name: str
    per_second: float
    reference_per_second: float
    at_least: float | None = None
    """Smallest share that meets the target; None for a comparison."""

    @property
    def value(self) -> float:
        """Which part of the reference's rate ours is."""
        return self.per_second / self.reference_per_second

    @property
    def is_met(self) -> bool:
        """Whether the target is met."""
        return self.at_least is None or self.value >= self.at_least

    def __str__(self) -> str:
        """Write the share as one line of the table."""
        target = f"at least {self.at_least:.2f}" if self.at_least is not None else ""
        rates = f"{self.per_second:.0f}/s against {self.reference_per_second:.0f}/s"
        return _line(self.name, f"{self.value:.2f}", target, rates, self.is_met)


@dataclass(frozen=True, slots=True)
class Latency:
    """A time with a bound in seconds, which a slow or busy host stretches.

    ``true_seconds``, the time of ``/bin/true`` as a plain process in the same run, tells how slow
    the host is; a host faster than the one that the bound was set for does not lower it.
    """

    name: str
    seconds: float
    at_most_seconds: float
    true_seconds: float

    @property
    def bound_seconds(self) -> float:
        """The bound on this host, in this run."""
        return self.at_most_seconds * max(1.0, self.true_seconds / QUIET_TRUE_SECONDS)

    @property
    def is_met(self) -> bool:
        """Whether the target is met."""
        return self.seconds <= self.bound_seconds

    def __str__(self) -> str:
        """Write the time as one line of the table."""
        target = f"at most {_ms(self.at_most_seconds)}"
        there = f"{self.seconds / self.true_seconds:.2f}x plain /bin/true"
        stretched = (
            ""
            if self.bound_seconds == self.at_most_seconds
            else (f", {_ms(self.bound_seconds)} as busy as the host is")
        )
        return _line(self.name, _ms(self.seconds), target, there + stretched, self.is_met)


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of something there was, in its unit."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    """Largest value that meets the target; None where there is none."""
    at_least: float | None = None
    """Smallest value that meets the target; None where there is none."""
    detail: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the target is met."""
        is_too_much = self.at_most is not None and self.value > self.at_most
        is_too_little = self.at_least is not None and self.value < self.at_least
        return not (is_too_much or is_too_little)

    def __str__(self) -> str:
        """Write the amount as one line of the table."""
        targets = (("at most", self.at_most), ("at least", self.at_least))
        words = [
            f"{word} {_amount(bound, self.unit)}" for word, bound in targets if bound is not None
        ]
        value = _amount(self.value, self.unit)
        return _line(self.name, value, ", ".join(words), self.detail, self.is_met)


@dataclass(frozen=True, slots=True)
class Count:
    """How many of something there were; the target is none, where there is one."""

    name: str
    number: int
    total: int
    detail: str = ""
    has_target: bool = True

    @property
    def is_met(self) -> bool:
        """Whether the target is met."""
        return not (self.has_target and self.number)

    def __str__(self) -> str:
        """Write the count as one line of the table."""
        target = "none" if self.has_target else ""
        return _line(self.name, f"{self.number} of {self.total}", target, self.detail, self.is_met)


@dataclass(frozen=True, slots=True)
class Absent:
    """Something that could not be measured on this host, and why."""

    name: str
    reason: str
    is_met: bool = True

    def __str__(self) -> str:
        """Write it as one line of the table."""
        return f"{self.name:<54} not measured: {self.reason}"


def _amount(value: float, unit: str) -> str:
    number = f"{value:.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.2f}"
    return f"{number} {unit}".rstrip()


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _line(name: str, value: str, target: str, detail: str, is_met: bool) -> str:
    word = ("ok" if is_met else "MISSED") if target else "-"
    return f"{name:<54} {value:>12}  {target:<18} {word:<7} {detail}".rstrip()
