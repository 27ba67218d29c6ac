"""What ``loopwright sandbox run`` is given: limits, a workspace, standard input."""

import os
from pathlib import Path

from loopwright.adapters.collect import WorkspaceTooLarge, collect, open_folder
from loopwright.cli.sandbox_limits import Machine, read_limits
from loopwright.contracts.failures import UserError
from loopwright.contracts.workspaces import CommandRequest, Workspace

_MAX_WORKSPACE_BYTES = 1 << 30


def read_request(
    command: list[str], *, limits: str, workspace: Path | None, stdin: Path | None
) -> CommandRequest:
    """Check everything at once.

    Raises:
        UserError: every problem, each on its line.
    """
    problems: list[str] = []
    read = read_limits(limits, problems, Machine.this())
    if workspace is not None and not workspace.is_dir():
        problems.append(f"--workspace: expected a folder, got {str(workspace)!r}, which is none")
    data = _read_stdin(stdin, problems)
    if problems:
        raise UserError("\n  ".join(["the command was not run:", *problems]))
    return CommandRequest(argv=tuple(command), limits=read, stdin=data)


def read_workspace(folder: Path | None) -> Workspace:
    """Read the files of a folder; links and special files are left out.

    Raises:
        UserError: it holds too much, or cannot be read.
    """
    if folder is None:
        return Workspace()
    try:
        with open_folder(os.path.realpath(folder)) as opened:
            return collect(opened, max_bytes=_MAX_WORKSPACE_BYTES).workspace
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
