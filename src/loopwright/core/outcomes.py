"""Outcomes of commands: what a run came to, and what of it differs from another run."""

import hashlib

from loopwright.contracts.commands import CommandOutcome, Part
from loopwright.contracts.workspaces import CommandRequest
from loopwright.core.protocols import JailRun


def outcome_of(run: JailRun, request: CommandRequest) -> CommandOutcome:
    """Digest how a command ended, what it printed and what it left."""
    result = run.result
    return CommandOutcome(
        exit_code=result.exit_code,
        signal=result.signal,
        timed_out=result.timed_out,
        oom=result.oom,
        output_limit=result.output_limit,
        is_suspect=result.is_suspect,
        stdout_sha256=hashlib.sha256(result.stdout).hexdigest(),
        stderr_sha256=hashlib.sha256(result.stderr).hexdigest(),
        num_stdout_bytes=result.num_stdout_bytes,
        num_stderr_bytes=result.num_stderr_bytes,
        workspace=run.workspace.digest if request.collect else None,
    )


def differing_parts(recorded: CommandOutcome, seen: CommandOutcome) -> tuple[Part, ...]:
    """List what differs; where one of them alone ran out of time, that is all there is to say."""
    if recorded.timed_out != seen.timed_out:
        return (Part.TIMING,)
    mine, other = _parts(recorded), _parts(seen)
    return tuple(part for part in mine if mine[part] != other[part])


def _parts(outcome: CommandOutcome) -> dict[Part, tuple[object, ...]]:
    """Group what is compared; how much a program had printed when it was ended is chance."""
    is_ended = outcome.timed_out or outcome.oom or outcome.output_limit
    num_stdout_bytes = None if is_ended else outcome.num_stdout_bytes
    num_stderr_bytes = None if is_ended else outcome.num_stderr_bytes
    return {
        Part.EXIT: (outcome.exit_code, outcome.signal, outcome.oom, outcome.output_limit),
        Part.STDOUT: (outcome.stdout_sha256, num_stdout_bytes),
        Part.STDERR: (outcome.stderr_sha256, num_stderr_bytes),
        Part.WORKSPACE: (outcome.workspace,),
    }
