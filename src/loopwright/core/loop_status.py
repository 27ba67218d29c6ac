"""What a loop is doing in one word, for lists of loops."""

from loopwright.contracts.iterations import LoopPhase, LoopStatus


def loop_status(phase: LoopPhase, *, is_paused: bool, is_stopped: bool) -> LoopStatus:
    """Name the status of a loop that has neither failed nor been cancelled.

    Args:
        phase: what it does at the moment.
        is_paused: whether it is to wait after the running iteration.
        is_stopped: whether it is to end, or has ended, by a stop.
    """
    if phase == "ended":
        return "stopped" if is_stopped else "completed"
    if is_stopped:
        return "stopping"
    if is_paused:
        return "paused" if phase == "paused" else "pausing"
    return "running"
