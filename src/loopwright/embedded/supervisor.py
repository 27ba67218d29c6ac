"""Starts children in order, keeps them running, and stops them in reverse order."""

import logging
import os
import time
from collections.abc import Callable

from loopwright.contracts.failures import LoopError
from loopwright.embedded.child import Child
from loopwright.embedded.info import ChildState, StackInfo, StackState
from loopwright.embedded.logs import LogKeeper, last_lines
from loopwright.embedded.plan import Plan
from loopwright.embedded.processes import identify
from loopwright.embedded.state_folder import StateFolder

_logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.1


class Supervisor:
    """Runs the children of one plan, in the thread that calls it: they die with that thread."""

    def __init__(
        self,
        plan: Plan,
        folder: StateFolder,
        *,
        on_change: Callable[[StackInfo], None] = lambda _info: None,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            plan: the children.
            folder: its logs and status file.
            on_change: told whenever the status changes.
        """
        own = identify(os.getpid())
        assert own is not None
        self._children = [Child(spec, folder, plan.restart) for spec in plan.children]
        self._max_start_failures = plan.restart.max_start_failures
        self._logs = LogKeeper([child.log for child in self._children])
        self._on_change = on_change
        self._info = StackInfo(**plan.connections.model_dump(), supervisor=own)
        self._stop_requests = 0
        self._run = folder.run
        self._run_inode = folder.run.stat().st_ino

    def request_stop(self) -> None:
        """End ``run``; safe in a signal handler. A second request kills what still runs."""
        self._stop_requests += 1

    def run(self) -> None:
        """Keep the children running until a stop is requested, then stop them.

        Raises:
            LoopError: a child never became healthy, or the state folder was removed; everything is
                stopped.
        """
        self._logs.rotate()
        failure: str | None = None
        try:
            while not self._stop_requests:
                self._advance()
                self._publish(self._state())
                time.sleep(_TICK_SECONDS)
        except LoopError as error:
            failure = str(error)
            raise
        finally:
            self._publish(StackState.STOPPING, failure)
            self._stop()
            self._publish(StackState.FAILED if failure else StackState.STOPPED, failure)

    def _advance(self) -> None:
        if self._is_folder_gone():
            raise LoopError(f"{self._run} was removed or replaced; the platform in it stops")
        for child in self._children:
            now = time.monotonic()
            child.watch(now)
            if not child.was_healthy and child.failures >= self._max_start_failures:
                raise LoopError(self._explain(child))
            if child.is_due(now) and self._has_what_it_needs(child):
                child.start(now)
                self._publish(self._state())
        self._logs.shorten(time.monotonic())

    def _is_folder_gone(self) -> bool:
        """Tell whether the state folder, by which commands find this platform, was removed."""
        try:
            return self._run.stat().st_ino != self._run_inode
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def _has_what_it_needs(self, child: Child) -> bool:
        healthy = {other.spec.name for other in self._children if other.state is ChildState.HEALTHY}
        return healthy.issuperset(child.spec.needs)

    def _explain(self, child: Child) -> str:
        return (
            f"{child.spec.name} did not start: {child.failures} attempts, the last ended with "
            f"{child.info.last_exit}; the end of {child.log}:\n{last_lines(child.log)}"
        )

    def _state(self) -> StackState:
        """Be starting until everything has been healthy once."""
        if all(child.was_healthy for child in self._children):
            return StackState.RUNNING
        return StackState.STARTING

    def _stop(self) -> None:
        for stage in sorted({child.spec.stage for child in self._children}, reverse=True):
            self._stop_together(
                [child for child in reversed(self._children) if child.spec.stage == stage]
            )

    def _stop_together(self, children: list[Child]) -> None:
        for child in children:
            child.terminate()
        deadline = time.monotonic() + max(child.spec.grace_seconds for child in children)
        while running := [child for child in children if not child.reap_stopped()]:
            if time.monotonic() > deadline or self._stop_requests > 1:
                for child in running:
                    child.kill()
            self._publish(StackState.STOPPING, self._info.failure)
            time.sleep(_TICK_SECONDS / 4)
        self._publish(StackState.STOPPING, self._info.failure)

    def _publish(self, state: StackState, failure: str | None = None) -> None:
        children = {child.spec.name: child.info for child in self._children}
        info = self._info.model_copy(
            update={"state": state, "failure": failure, "children": children}
        )
        if info != self._info:
            self._info = info
            self._save(info)
            self._on_change(info)

    def _save(self, info: StackInfo) -> None:
        """Write the status file; a full disk must not keep children from being stopped."""
        try:
            info.save()
        except OSError as error:
            _logger.warning("the status file cannot be written: %s", error)
