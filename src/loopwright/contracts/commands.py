"""What turns and gradings record of a command, so that any host can run it again and compare."""

from enum import StrEnum

from loopwright.contracts.base import Contract
from loopwright.contracts.workspaces import CommandRequest

MAX_STDIN_BYTES = 64 * 1024
"""Standard input that the record of a turn holds itself; more is kept as a workspace."""
STDIN_FILE = "stdin"
"""The one file of a workspace that holds a standard input."""


class CommandOutcome(Contract):
    """What must be equal when the command runs again, in digests.

    Example:
        ``CommandOutcome(exit_code=0, stdout_sha256="e3b0...", stderr_sha256="e3b0...")``
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    oom: bool = False
    output_limit: bool = False
    is_suspect: bool = False
    """Whether the host starved the command of processor time; never compared."""
    stdout_sha256: str
    """Of the bytes that were kept."""
    stderr_sha256: str
    num_stdout_bytes: int = 0
    """Bytes that came out, kept or not."""
    num_stderr_bytes: int = 0
    workspace: str | None = None
    """Digest of the workspace afterwards; None when it was not collected."""


class CommandRecord(Contract):
    """One command that an environment ran to reply or to grade.

    What is hidden from the policy stands in no record of it but by digest: it is among the files of
    a workspace or in the standard input, which a grading keeps apart whatever its length.
    """

    request: CommandRequest
    """The command whole, but for a standard input kept apart."""
    stdin: str = ""
    """Digest of a kept workspace whose file ``stdin`` is the standard input; empty when the request
    has it."""
    workspace: str
    """Digest of the workspace it was given, which is kept."""
    outcome: CommandOutcome


class Part(StrEnum):
    """What of two outcomes can differ."""

    EXIT = "exit"
    """Exit code, signal, or the limit that ended the command."""
    TIMING = "timing"
    """Only one of them ran out of time, so that nothing else can be compared."""
    STDOUT = "stdout"
    STDERR = "stderr"
    WORKSPACE = "workspace"
