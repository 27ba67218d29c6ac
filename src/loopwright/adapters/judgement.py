"""How a jailed command ended, told from what we did to it and what its process 1 reported."""

from signal import SIGKILL, SIGXCPU

from loopwright.adapters.cgroups import Usage
from loopwright.adapters.guarded_process import GuardedProcess, Kill
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import CommandResult, Limits


def judge(process: GuardedProcess, usage: Usage, limits: Limits) -> CommandResult:
    """Say how a command ended: what we did to it first, then what its process 1 saw.

    Raises:
        SandboxUnavailable: neither tells; the jail itself failed.
    """
    killed_for = process.killed_for
    event, number, seconds = _read_status(bytes(process.status.data))
    if killed_for in (Kill.CLOSED, Kill.NO_START) or not (event or killed_for or usage.oom_kills):
        raise SandboxUnavailable(_explain(process))
    is_killed = killed_for is None and (event is None or (event, number) == ("signal", SIGKILL))
    is_oom = is_killed and usage.oom_kills > 0
    is_out_of_cpu = (
        killed_for is None and not is_oom and _is_out_of_cpu(event, number, usage, limits)
    )
    is_ended = bool(killed_for) or is_oom or is_out_of_cpu
    return CommandResult(
        exit_code=number if event == "exit" and not is_ended else None,
        signal=number if event == "signal" and not is_ended else None,
        timed_out=killed_for == Kill.TIMEOUT or is_out_of_cpu,
        oom=is_oom,
        output_limit=killed_for == Kill.OUTPUT_LIMIT,
        stdout=bytes(process.stdout.data),
        stderr=bytes(process.stderr.data),
        stdout_truncated=process.stdout.is_truncated,
        stderr_truncated=process.stderr.is_truncated,
        wall_seconds=process.wall_seconds if seconds is None else seconds,
        cpu_seconds=usage.cpu_seconds,
        peak_memory_bytes=usage.peak_memory_bytes,
        limits=limits,
    )


def _is_out_of_cpu(event: str | None, number: int, usage: Usage, limits: Limits) -> bool:
    """Tell SIGXCPU, or the kill that follows it, from the same signal sent without need."""
    is_kill = event == "signal" and number in (SIGXCPU, SIGKILL)
    return is_kill and usage.cpu_seconds >= 0.9 * limits.cpu_seconds


def _read_status(text: bytes) -> tuple[str | None, int, float | None]:
    """Read the last line that process 1 wrote, if the command came to an end by itself."""
    words = text.decode("ascii").splitlines()[-1:]
    event, *numbers = words[0].split() if words else ["start"]
    if event == "start":
        return None, 0, None
    return event, int(numbers[0]), int(numbers[1]) / 1e6


def _explain(process: GuardedProcess) -> str:
    if process.killed_for == Kill.CLOSED:
        return "the jail was closed while a command ran"
    log = bytes(process.log.data).decode("utf-8", "replace").splitlines()
    errors = [line for line in log if line.startswith(("[E]", "[F]", "[W]"))][-5:]
    said = bytes(process.stderr.data[-500:]).decode("utf-8", "replace")
    return f"nsjail did not run the command: {' | '.join(errors)} {said}".strip()
