"""What ``loopwright sandbox run`` is given: limits, a workspace, standard input."""

import os
import re
from pathlib import Path

from pydantic import ValidationError

from loopwright.adapters.collect import WorkspaceTooLarge, collect
from loopwright.contracts.failures import UserError
from loopwright.contracts.workspaces import CommandRequest, Limits, Workspace

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
_MAX_WORKSPACE_BYTES = 1 << 30


def read_request(
    command: list[str], *, limits: str, workspace: Path | None, stdin: Path | None
) -> CommandRequest:
    """Check everything at once.

    Raises:
        UserError: every problem, each on its line.
    """
    problems: list[str] = []
    read = read_limits(limits, problems)
    if workspace is not None and not workspace.is_dir():
        problems.append(f"--workspace: expected a folder, got {str(workspace)!r}, which is none")
    data = _read_stdin(stdin, problems)
    if problems:
        raise UserError("\n  ".join(["the command was not run:", *problems]))
    return CommandRequest(argv=tuple(command), limits=read, stdin=data)


def read_limits(text: str, problems: list[str]) -> Limits:
    """Read ``name=value,...``; what is wrong with it is added to ``problems``."""
    values: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = (word.strip() for word in part.partition("="))
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)", value)
        if name not in _FIELDS:
            problems.append(f"--limits: {name!r} is none of {', '.join(_FIELDS)}")
        elif name in values:
            problems.append(f"--limits: {name!r} is given twice")
        elif found is None or (found[2] and not _FIELDS[name].endswith("_bytes")):
            problems.append(f"--limits: {name} expects a number such as 5 or 64M, got {value!r}")
        else:
            values[name] = float(found[1]) * _UNITS[found[2]]
    try:
        return Limits.model_validate({_FIELDS[name]: value for name, value in values.items()})
    except ValidationError as error:
        problems += [_explain(detail["loc"][0], detail["msg"], values) for detail in error.errors()]
    return Limits()


def read_workspace(folder: Path | None) -> Workspace:
    """Read the files of a folder; links and special files are left out.

    Raises:
        UserError: it holds too much, or cannot be read.
    """
    if folder is None:
        return Workspace()
    try:
        return collect(Path(os.path.realpath(folder)), max_bytes=_MAX_WORKSPACE_BYTES)
    except (WorkspaceTooLarge, OSError) as error:
        raise UserError(f"--workspace: {folder} cannot be copied in: {error}") from error


def _read_stdin(file: Path | None, problems: list[str]) -> bytes:
    if file is None:
        return b""
    try:
        return file.read_bytes()
    except OSError as error:
        problems.append(f"--stdin: {file} cannot be read: {error.strerror}")
    return b""


def _explain(field: int | str, message: str, values: dict[str, float]) -> str:
    name = next(name for name, known in _FIELDS.items() if known == field)
    return f"--limits: {name}: {message[0].lower()}{message[1:]}, got {values[name]:g}"
