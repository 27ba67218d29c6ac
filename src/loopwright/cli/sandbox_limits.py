"""The limits that ``loopwright sandbox run`` takes, within what this machine can keep."""

import re
from dataclasses import dataclass
from pathlib import Path

import annotated_types
import psutil

from loopwright.adapters.launchers import MAX_OWN_PROCESSES
from loopwright.contracts.workspaces import Limits

_FIELDS = {
    "wall": "wall_seconds",
    "cpu": "cpu_seconds",
    "memory": "memory_bytes",
    "pids": "max_processes",
    "output": "output_bytes",
    "drain": "drain_bytes",
    "disk": "disk_bytes",
}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_PID_MAX = Path("/proc/sys/kernel/pid_max")


@dataclass(frozen=True, slots=True)
class Machine:
    """What bounds the limits here, beyond what holds everywhere."""

    memory_bytes: int
    max_processes: int

    @classmethod
    def this(cls) -> "Machine":
        """Ask the kernel."""
        return cls(
            memory_bytes=psutil.virtual_memory().total,
            max_processes=int(_PID_MAX.read_text()) - MAX_OWN_PROCESSES,
        )

    def bound(self, field: str) -> "Bound | None":
        """Give the most that a field can be here; None where the machine sets no bound."""
        memory = f"{self.memory_bytes >> 20}M, the memory of this machine"
        processes = f"{self.max_processes}, all that this kernel numbers"
        return {
            "memory_bytes": Bound(self.memory_bytes, memory),
            "disk_bytes": Bound(self.memory_bytes, f"{memory}, which holds its files"),
            "max_processes": Bound(
                self.max_processes, processes, "ask for fewer, or raise sysctl kernel.pid_max"
            ),
        }.get(field)


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a limit can be."""

    most: float
    text: str
    """The number as the option takes it, and why."""
    advice: str = "ask for less"


def read_limits(text: str, problems: list[str], machine: Machine) -> Limits:
    """Read ``name=value,...``; what is wrong with it is added to ``problems``."""
    values: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in _FIELDS:
            problems.append(f"--limits: {name!r} is none of {', '.join(_FIELDS)}")
        elif name in values:
            problems.append(f"--limits: {name!r} is given twice")
        elif problem := _problem(name, value, machine):
            problems.append(f"--limits: {name}: {problem}")
        else:
            values[name] = _number(value, _FIELDS[name]) or 0
    if problems:
        return Limits()
    return Limits.model_validate({_FIELDS[name]: value for name, value in values.items()})


def _problem(name: str, value: str, machine: Machine) -> str:
    """Say what is wrong with a value; empty when nothing is."""
    field = _FIELDS[name]
    got = f"got {value or 'nothing'}"
    number = _number(value, field)
    if number is None:
        return f"expected a number such as {'64M' if field.endswith('_bytes') else '5'}, {got}"
    if field != "wall_seconds" and not number.is_integer():
        return f"expected a whole number, {got}"
    least, most = _range(field)
    if number < least or (number == 0 and field == "wall_seconds"):
        return f"expected {f'at least {_written(least, field)}' if least else 'more than 0'}, {got}"
    for bound in (machine.bound(field), Bound(most, _written(most, field))):
        if bound and number > bound.most:
            return f"expected at most {bound.text}, {got}; {bound.advice}"
    return ""


def _number(value: str, field: str) -> float | None:
    found = re.fullmatch(r"(\d{1,30}(?:\.\d{1,30})?)([KMG]?)", value, re.ASCII)
    if found is None or (found[2] and not field.endswith("_bytes")):
        return None
    return float(found[1]) * _UNITS[found[2]]


def _range(field: str) -> tuple[float, float]:
    """Give the least and the most that the contract takes."""
    least, most = 0.0, float("inf")
    for bound in Limits.model_fields[field].metadata:
        if isinstance(bound, annotated_types.Ge):
            least = float(str(bound.ge))
        elif isinstance(bound, annotated_types.Le):
            most = float(str(bound.le))
    return least, most


def _written(number: float, field: str) -> str:
    """Write a bound in the unit that the option takes."""
    units = _UNITS if field.endswith("_bytes") else {"": 1}
    unit = next(unit for unit in reversed(units) if number % units[unit] == 0)
    return f"{number / units[unit]:.0f}{unit}"
