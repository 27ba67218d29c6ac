"""The supervisor as a process: its lock, its signals, and the watchdog that outlives it."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from loopwright.adapters import jail_roots
from loopwright.embedded.info import StackInfo
from loopwright.embedded.locks import hold
from loopwright.embedded.plan import Plan
from loopwright.embedded.ports import claimed
from loopwright.embedded.processes import kill_session
from loopwright.embedded.state_folder import StateFolder
from loopwright.embedded.supervisor import Supervisor

_logger = logging.getLogger(__name__)

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LOCK_SECONDS = 20.0
"""The watchdog of a supervisor that was killed lets go of the lock within this time."""


def supervise(
    plan: Plan,
    *,
    on_change: Callable[[StackInfo], None] = lambda _info: None,
) -> None:
    """Run a plan in this process until SIGTERM or SIGINT; nothing of it is left running.

    Raises:
        UserError: another supervisor has this state folder.
        LoopError: a child never became healthy.
    """
    folder = StateFolder(plan.connections.state_dir)
    folder.make()
    busy = f"another `loopwright up` runs with the state folder {folder.root}; stop it first"
    with hold(folder.lock, seconds=_LOCK_SECONDS, busy=busy):
        sweep(folder)
        supervisor = Supervisor(plan, folder, on_change=on_change)
        with claimed(plan.ports), _watchdog(folder), _stop_on_signals(supervisor):
            supervisor.run()


def sweep(folder: StateFolder) -> None:
    """Kill what a supervisor that is gone has left running, and take its jails away.

    Raises:
        SandboxUnavailable: the jails cannot be taken away.
    """
    info = StackInfo.load(folder.root)
    for name, child in (info.children if info else {}).items():
        if child.process is not None and (number := kill_session(child.process)):
            _logger.warning("%s: %d processes were left over and are killed", name, number)
    jail_roots.clear(jail_roots.jail_root(folder.root))


@contextmanager
def _stop_on_signals(supervisor: Supervisor) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        supervisor.request_stop()

    before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _watchdog(folder: StateFolder) -> Iterator[None]:
    """Have a process that sweeps when this one is gone, however it went.

    Linux kills the children themselves together with this process; the watchdog sees to what they
    have started. It keeps the lock until it is done, so no supervisor starts before that.
    """
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(theirs)
        _sweep_after(ours, folder)
    os.close(ours)
    try:
        yield
    finally:
        os.close(theirs)
        os.waitpid(pid, 0)


def _sweep_after(pipe: int, folder: StateFolder) -> NoReturn:
    """Wait until nobody holds the other end of the pipe any more."""
    try:
        os.setsid()
        for number in _STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        os.read(pipe, 1)
        sweep(folder)
    finally:
        os._exit(0)
