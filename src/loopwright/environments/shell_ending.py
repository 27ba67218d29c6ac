"""Says in one line how a command ended, for the policy to read below the output."""

from signal import SIGXCPU, Signals

from loopwright.contracts.workspaces import MIB, CommandResult, Limits, Skipped, raw
from loopwright.environments.clean_text import clean
from loopwright.environments.shell_report import ShellReport

_SIGNALLED = 128
"""A shell gives this and the signal's number for a program that a signal ended."""
_MAX_NAMED = 5
_MAX_SHOWN = 80


def describe_ending(
    result: CommandResult, report: ShellReport, skipped: tuple[Skipped, ...] = ()
) -> str:
    """Give the line, in brackets.

    Example:
        ``[exit code 0; 1 background process ended with the command: python3]``
    """
    parts = [_how(result), *_killed(result), *_strays(report.strays), *report.failed_services]
    return f"[{'; '.join((*parts, *report.notes, *_skipped(skipped)))}]"


def _how(result: CommandResult) -> str:
    limits = result.limits
    if result.timed_out:
        return _time(result)
    if result.oom:
        return f"ended for using more than {_size(limits.memory_bytes)} of memory"
    if result.output_limit and (result.stdout_truncated or result.stderr_truncated):
        return f"ended for printing more than {_size(limits.drain_bytes)}"
    if result.output_limit:
        return (
            f"what it left is more than a workspace may hold ({_size(limits.disk_bytes)}), "
            "so its changes to files are lost"
        )
    if result.signal is not None:
        return f"ended by signal {_signal(result.signal)}"
    return _exit(result, limits)


def _time(result: CommandResult) -> str:
    limits = result.limits
    if result.wall_seconds < limits.wall_seconds and result.cpu_seconds >= limits.cpu_seconds / 2:
        return f"ended for using {limits.cpu_seconds} s of processor time"
    return f"timed out after {limits.wall_seconds:g} s"


def _exit(result: CommandResult, limits: Limits) -> str:
    code = result.exit_code or 0
    number = code - _SIGNALLED
    if number not in set(Signals):
        return f"exit code {code}"
    because = ""
    if number == SIGXCPU:
        because = f", for using {limits.cpu_seconds} s of processor time"
    return f"exit code {code}: ended by signal {_signal(number)}{because}"


def _killed(result: CommandResult) -> list[str]:
    number = result.num_oom_kills
    if result.oom or not number:
        return []
    processes = "process was" if number == 1 else "processes were"
    memory = _size(result.limits.memory_bytes)
    return [f"{number} {processes} ended for using more than {memory} of memory together"]


def _strays(names: tuple[str, ...]) -> list[str]:
    if not names:
        return []
    processes = "process" if len(names) == 1 else "processes"
    shown = ", ".join(sorted(set(names))[:_MAX_NAMED])
    return [f"{len(names)} background {processes} ended with the command: {shown}"]


def _skipped(skipped: tuple[Skipped, ...]) -> list[str]:
    if not skipped:
        return []
    shown = [f"{clean(raw(one.path)[:_MAX_SHOWN])} ({one.reason})" for one in skipped[:_MAX_NAMED]]
    more = f" and {len(skipped) - _MAX_NAMED} more" if skipped[_MAX_NAMED:] else ""
    return [f"not kept in the workspace: {', '.join(shown)}{more}"]


def _signal(number: int) -> str:
    return f"{number} ({Signals(number).name})" if number in set(Signals) else str(number)


def _size(num_bytes: int) -> str:
    return f"{num_bytes / MIB:.4g} MiB"
