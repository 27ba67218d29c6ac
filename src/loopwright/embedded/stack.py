"""The platform on one machine, as its users start, ask and stop it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loopwright.contracts.failures import LoopError, UserError
from loopwright.embedded.children import build_plan, worker_environment
from loopwright.embedded.credentials import load_credentials
from loopwright.embedded.info import ChildState, StackInfo, StackState
from loopwright.embedded.locks import hold, is_held
from loopwright.embedded.logs import last_lines, previous
from loopwright.embedded.options import StackOptions
from loopwright.embedded.plan import Plan
from loopwright.embedded.ports import ChosenPorts
from loopwright.embedded.preflight import check_machine, refuse_lacking
from loopwright.embedded.processes import is_alive
from loopwright.embedded.progress import changes
from loopwright.embedded.state_folder import DEFAULT_STATE, StateFolder, write_private
from loopwright.embedded.supervision import supervise, sweep

__all__ = ["ChildState", "Stack", "StackInfo", "StackOptions", "StackState", "stack_environment"]

_POLL_SECONDS = 0.1
_LAUNCH_SECONDS = 30.0
_STOP_SECONDS = 60.0

OnProgress = Callable[[str], None]


def stack_environment(info: StackInfo) -> dict[str, str]:
    """Build the ``LOOPWRIGHT_*`` variables by which a process finds the platform."""
    return worker_environment(info)


class Stack:
    """The platform of one state folder; its processes live on when this object is gone."""

    def __init__(
        self,
        state_dir: Path = DEFAULT_STATE,
        *,
        options: StackOptions | None = None,
        make_plan: Callable[[], Plan] | None = None,
    ) -> None:
        """Name the platform; nothing is started or checked.

        Args:
            state_dir: its state folder.
            options: choices for the next start.
            make_plan: gives other processes than the platform's own, unchecked.
        """
        self._folder = StateFolder(state_dir.resolve())
        self._options = options or StackOptions()
        self._make_plan = make_plan or self._plan
        self._is_checked = make_plan is None

    def info(self) -> StackInfo | None:
        """Give the status of the running platform; None when it does not run."""
        return StackInfo.load(self._folder.root) if self.is_running() else None

    def is_running(self) -> bool:
        """Tell whether a supervisor has the state folder."""
        return is_held(self._folder.lock)

    def ensure_running(self, on_progress: OnProgress = lambda _line: None) -> StackInfo:
        """Start the platform unless it runs, and wait until all of it is healthy.

        Whatever ends this early, Ctrl-C too, stops what it has started.

        Raises:
            UserError: the machine lacks something, or the platform runs with other options.
            LoopError: a process did not become healthy; everything is stopped.
        """
        if info := self._join(on_progress):
            return info
        self._check()
        self._folder.make()
        with self._launching():
            return self._join(on_progress) or self._launch(on_progress)

    def run_in_foreground(self, on_progress: OnProgress = lambda _line: None) -> None:
        """Run the platform in this process until SIGINT or SIGTERM, then stop it.

        Raises:
            UserError: the machine lacks something, or the platform runs already.
            LoopError: a process did not become healthy; everything is stopped.
        """
        if self.is_running():
            raise UserError(f"the platform in {self._folder.root} runs already")
        self._check()
        before: list[StackInfo] = []

        def report(info: StackInfo) -> None:
            for line in changes(before[-1] if before else None, info):
                on_progress(line)
            before[:] = [info]

        self._folder.make()
        supervise(self._make_plan(), on_change=report)

    def stop(self, on_progress: OnProgress = lambda _line: None) -> bool:
        """Stop the platform, in reverse order; tell whether it ran.

        Raises:
            LoopError: a process could not be ended.
        """
        if not self._folder.run.exists():
            return False
        was_running = self.is_running()
        if was_running:
            self._stop(on_progress)
        sweep(self._folder)
        return was_running

    def _check(self) -> None:
        if self._is_checked:
            checks = check_machine(self._folder.root, self._options.model)
            refuse_lacking(checks, self._options.ports)

    def _plan(self) -> Plan:
        ports = ChosenPorts.choose(self._folder, self._options.ports)
        plan = build_plan(self._folder, self._options, ports, load_credentials(self._folder))
        ports.remember(self._folder)
        return plan

    @contextmanager
    def _launching(self) -> Iterator[None]:
        busy = f"another command is starting the platform in {self._folder.root}; try again later"
        with hold(self._folder.launch_lock, seconds=_LAUNCH_SECONDS, busy=busy):
            yield

    def _launch(self, on_progress: OnProgress) -> StackInfo:
        write_private(self._folder.plan, self._make_plan().model_dump_json())
        log = self._folder.log("supervisor")
        if log.exists():
            log.replace(previous(log))
        with log.open("ab") as stream:
            supervisor = subprocess.Popen(
                [sys.executable, "-P", "-m", "loopwright.embedded", str(self._folder.root)],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            return self._wait(supervisor, on_progress)
        except BaseException:
            self._end(supervisor, on_progress)
            raise

    def _wait(self, supervisor: subprocess.Popen[bytes], on_progress: OnProgress) -> StackInfo:
        before: StackInfo | None = None
        while True:
            has_ended = supervisor.poll() is not None
            info = StackInfo.load(self._folder.root)
            if info is not None and info.supervisor.pid == supervisor.pid:
                for line in changes(before, info):
                    on_progress(line)
                before = info
                if info.is_healthy:
                    return info
            if has_ended:
                raise self._failed(before)
            time.sleep(_POLL_SECONDS)

    def _failed(self, info: StackInfo | None) -> LoopError:
        if info is not None and info.failure:
            return LoopError(info.failure)
        log = self._folder.log("supervisor")
        return LoopError(f"the supervisor ended; the end of {log}:\n{last_lines(log)}")

    def _end(self, supervisor: subprocess.Popen[bytes], on_progress: OnProgress) -> None:
        if supervisor.poll() is None:
            on_progress("stopping")
            supervisor.terminate()
            try:
                supervisor.wait(_STOP_SECONDS)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                supervisor.kill()
                supervisor.wait()
        self._await_release()

    def _join(self, on_progress: OnProgress) -> StackInfo | None:
        """Wait for the health of a platform that runs already; None if none does, or any more."""
        before: StackInfo | None = None
        while self.is_running():
            info = StackInfo.load(self._folder.root)
            if info is not None:
                for line in changes(before, info):
                    on_progress(line)
                before = info
                if info.is_healthy:
                    self._refuse_other_options(info)
                    return info
            time.sleep(_POLL_SECONDS)
        if before is not None and before.state is StackState.FAILED:
            raise self._failed(before)
        return None

    def _refuse_other_options(self, info: StackInfo) -> None:
        running = {
            "temporal": info.temporal_address,
            "ui": info.ui_url,
            "s3": info.s3_endpoint,
            "engine": info.engine_url,
        }
        is_model_asked = "model" in self._options.model_fields_set
        if is_model_asked and self._options.model.resolve() != info.model:
            raise UserError(
                f"--model {self._options.model}: the platform in {self._folder.root} runs already, "
                f"with {info.model}; `loopwright down` it first or leave the option out"
            )
        for name, port in self._options.ports.model_dump(exclude_none=True).items():
            if not running[name].endswith(f":{port}"):
                raise UserError(
                    f"--{name}-port {port}: the platform in {self._folder.root} runs already, with "
                    f"{running[name]}; `loopwright down` it first or leave the option out"
                )

    def _stop(self, on_progress: OnProgress) -> None:
        before = StackInfo.load(self._folder.root)
        if before is None or not is_alive(before.supervisor):
            # Killed a moment ago; its watchdog holds the lock while it sweeps.
            self._await_release()
            return
        self._signal(before, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        is_running = True
        while is_running and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            # It lets go of the lock a moment before it is gone.
            is_running = self.is_running() or is_alive(before.supervisor)
            info = StackInfo.load(self._folder.root) or before
            for line in changes(before, info):
                on_progress(line)
            before = info
        if is_running:
            self._signal(before, signal.SIGKILL)
            self._await_release()

    def _signal(self, info: StackInfo, number: signal.Signals) -> None:
        if is_alive(info.supervisor):
            with suppress(ProcessLookupError):
                os.kill(info.supervisor.pid, number)

    def _await_release(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        while self.is_running():
            if time.monotonic() > deadline:
                raise LoopError(f"processes of {self._folder.root} do not end; see its logs")
            time.sleep(_POLL_SECONDS)
