"""What ``loopwright sandbox run`` is given: limits, a workspace, standard input."""

from pathlib import Path

from loopwright.adapters.workspaces import is_digest
from loopwright.cli.sandbox_limits import Machine, read_limits
from loopwright.contracts.failures import UserError
from loopwright.contracts.workspaces import CommandRequest

_MAX_STDIN_BYTES = 256 << 20


def read_request(
    command: list[str], *, limits: str, workspace: str | None, stdin: Path | None
) -> CommandRequest:
    """Check everything at once.

    Raises:
        UserError: every problem, each on its line.
    """
    problems: list[str] = []
    read = read_limits(limits, problems, Machine.this())
    if workspace is not None and not Path(workspace).is_dir() and not is_digest(workspace):
        problems.append(
            f"--workspace: expected a folder, or a digest of 64 hexadecimal digits, "
            f"got {workspace!r}, which is neither"
        )
    data = _read_stdin(stdin, problems)
    if problems:
        raise UserError("\n  ".join(["the command was not run:", *problems]))
    return CommandRequest(argv=tuple(command), limits=read, stdin=data)


def _read_stdin(file: Path | None, problems: list[str]) -> bytes:
    if file is None:
        return b""
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_STDIN_BYTES + 1)
    except OSError as error:
        problems.append(f"--stdin: {file} cannot be read: {error.strerror}")
        return b""
    if len(data) > _MAX_STDIN_BYTES:
        problems.append(
            f"--stdin: {file} holds more than {_MAX_STDIN_BYTES >> 20}M, the most that is taken; "
            "put it into the folder for --workspace"
        )
    return data
