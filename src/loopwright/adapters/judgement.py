"""How a jailed command ended, told from what we did to it and what its process 1 reported."""

import os
from dataclasses import dataclass
from signal import SIGKILL, SIGXCPU

from loopwright.adapters.cgroups import Usage
from loopwright.adapters.command_run import CommandRun, Kill
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import CommandRequest, CommandResult, Limits

_WARM_CPU_SECONDS = 0.5
"""What an interpreter that waited may have used before its command, within its limit."""


@dataclass(frozen=True, slots=True)
class Report:
    """What process 1 of a jail said of its program."""

    event: str
    """exit or signal."""
    number: int
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    """Largest resident set of any one process."""
    num_strays: int
    """Processes that the program left, which were killed."""
    start_errno: int
    """Error number of a program that could not be executed, else 0."""


def judge(
    run: CommandRun, usage: Usage | None, request: CommandRequest, *, why: str
) -> CommandResult:
    """Say how a command ended: what we did to it first, then what its process 1 saw.

    ``usage`` is None where no control group counts; ``why`` explains a jail that failed.

    Raises:
        SandboxUnavailable: neither tells; the jail itself failed.
    """
    report = read_report(bytes(run.status.data))
    killed_for, limits = run.killed_for, request.limits
    num_oom_kills = usage.oom_kills if usage else 0
    if killed_for is Kill.CLOSED:
        raise SandboxUnavailable("the jail was closed while a command ran")
    if killed_for is Kill.NO_START or not (report or killed_for or num_oom_kills):
        raise SandboxUnavailable(f"the jail did not run the command: {why}")
    is_ours = killed_for is not None
    is_killed = not is_ours and (report is None or _signal(report) == SIGKILL)
    is_oom = is_killed and num_oom_kills > 0
    cpu_seconds = usage.cpu_seconds if usage else report.cpu_seconds if report else 0.0
    is_out_of_cpu = not (is_ours or is_oom) and _is_out_of_cpu(report, cpu_seconds, limits)
    is_ended = is_ours or is_oom or is_out_of_cpu or report is None
    return CommandResult(
        exit_code=None if is_ended or not report or report.event != "exit" else report.number,
        signal=None if is_ended or not report else _signal(report),
        timed_out=killed_for is Kill.TIMEOUT or is_out_of_cpu,
        oom=is_oom,
        num_oom_kills=num_oom_kills,
        output_limit=killed_for is Kill.OUTPUT_LIMIT,
        stdout=run.stdout.kept,
        stderr=run.stderr.kept,
        stdout_truncated=run.stdout.is_truncated,
        stderr_truncated=run.stderr.is_truncated,
        num_stdout_bytes=run.stdout.num_bytes,
        num_stderr_bytes=run.stderr.num_bytes,
        start_error=os.strerror(report.start_errno) if report and report.start_errno else None,
        is_suspect=run.is_suspect,
        num_strays=report.num_strays if report else 0,
        wall_seconds=report.wall_seconds if report and not is_ours else run.wall_seconds,
        cpu_seconds=cpu_seconds,
        peak_memory_bytes=_peak(usage, report),
        limits=limits,
        strict=request.strict,
    )


def read_report(text: bytes) -> Report | None:
    """Read the last line that process 1 wrote, if the program came to an end by itself."""
    words = text.decode("ascii").splitlines()[-1:]
    event, *numbers = words[0].split() if words else ["start"]
    if event == "start":
        return None
    number, wall, cpu, peak_kibibytes, num_strays, start_errno = map(int, numbers)
    return Report(
        event=event,
        number=number,
        wall_seconds=wall / 1e6,
        cpu_seconds=cpu / 1e6,
        peak_memory_bytes=peak_kibibytes << 10,
        num_strays=num_strays,
        start_errno=start_errno,
    )


def _signal(report: Report) -> int | None:
    return report.number if report.event == "signal" else None


def _is_out_of_cpu(report: Report | None, cpu_seconds: float, limits: Limits) -> bool:
    """Tell SIGXCPU, or the kill that follows it, from the same signal sent without need."""
    is_kill = report is not None and _signal(report) in (SIGXCPU, SIGKILL)
    return is_kill and cpu_seconds >= limits.cpu_seconds - _WARM_CPU_SECONDS


def _peak(usage: Usage | None, report: Report | None) -> int:
    if usage:
        return usage.peak_memory_bytes
    return report.peak_memory_bytes if report else 0
