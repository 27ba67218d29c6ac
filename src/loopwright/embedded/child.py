"""One supervised child process: started in a session of its own, watched, and ended whole."""

import logging
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

from loopwright.contracts.failures import LoopError
from loopwright.embedded.health import has_given_up, is_healthy
from loopwright.embedded.info import ChildInfo, ChildState
from loopwright.embedded.plan import ChildSpec, ReadyFile, RestartPolicy
from loopwright.embedded.processes import (
    ProcessId,
    die_with_parent,
    identify,
    kill_session,
    yield_processor,
)
from loopwright.embedded.state_folder import StateFolder

_logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_CHECKS = {ChildState.STARTING: 0.2, ChildState.UNHEALTHY: 1.0}
_SECONDS_BETWEEN_CHECKS_WHEN_HEALTHY = 5.0
_GIVEN_UP_SECONDS = 10.0


class Child:
    """The state of one child; every method takes the time, on the monotonic clock."""

    def __init__(self, spec: ChildSpec, folder: StateFolder, policy: RestartPolicy) -> None:
        """Prepare; nothing is started yet."""
        self.spec = spec
        self.state = ChildState.WAITING
        self.was_healthy = False
        self.failures = 0
        self._folder = folder
        self._policy = policy
        self._popen: subprocess.Popen[bytes] | None = None
        self._process: ProcessId | None = None
        self._restarts = 0
        self._last_exit: str | None = None
        self._due = 0.0
        self._started = 0.0
        self._healthy_since = 0.0
        self._last_healthy = 0.0
        self._next_check = 0.0

    @property
    def log(self) -> Path:
        """Its log."""
        return self._folder.log(self.spec.name)

    @property
    def is_running(self) -> bool:
        """Whether it has a process."""
        return self._popen is not None

    @property
    def info(self) -> ChildInfo:
        """What the status file says of it."""
        return ChildInfo(
            state=self.state,
            process=self._process,
            restarts=self._restarts,
            last_exit=self._last_exit,
            log=self.log,
        )

    def is_due(self, now: float) -> bool:
        """Tell whether it should be started."""
        return self._popen is None and self.state is not ChildState.STOPPED and now >= self._due

    def start(self, now: float) -> None:
        """Start its process.

        Raises:
            LoopError: the program cannot be run.
        """
        for check in self.spec.health:
            if isinstance(check, ReadyFile):
                check.path.unlink(missing_ok=True)
        if self._last_exit is not None:
            self._restarts += 1
        try:
            self._popen = self._open()
        except OSError as error:
            raise LoopError(f"{self.spec.name} cannot be started: {error}") from error
        self._process = identify(self._popen.pid)
        self.state = ChildState.STARTING
        self._started = self._last_healthy = now
        self._next_check = now
        _logger.info("%s: started as process %d", self.spec.name, self._popen.pid)

    def watch(self, now: float) -> None:
        """Notice its end, or look at its health when that is due."""
        if self._popen is None:
            return
        status = self._popen.poll()
        if status is not None:
            self._ended(status, now)
        elif now >= self._next_check:
            self._check(now)

    def terminate(self) -> None:
        """Ask it to end; kill it if it is still starting, and may not listen yet."""
        if self._popen is None:
            return
        _logger.info("%s: stopping", self.spec.name)
        if self.state is ChildState.STARTING:
            self.kill()
        else:
            self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and all it has started."""
        if self._process is not None:
            kill_session(self._process)

    def reap_stopped(self) -> bool:
        """Tell whether it has ended after it was asked to, or never ran."""
        if self._popen is not None and self._popen.poll() is None:
            return False
        self.kill()
        self._popen = self._process = None
        self.state = ChildState.STOPPED
        return True

    def _open(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.spec.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder.run,
                env=os.environ | self.spec.environment,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )

    def _ended(self, status: int, now: float) -> None:
        self.kill()
        self._popen = self._process = None
        self._last_exit = f"exit {status}" if status >= 0 else signal.Signals(-status).name
        if self.state is ChildState.HEALTHY and self._is_reset_due(now):
            self.failures = 0
        self.failures += 1
        pause = self._policy.pause_seconds(self.failures)
        self._due = now + pause
        self.state = ChildState.BACKING_OFF
        _logger.warning(
            "%s: ended with %s; starts again in %.1f s", self.spec.name, self._last_exit, pause
        )

    def _is_reset_due(self, now: float) -> bool:
        return now - self._healthy_since >= self._policy.reset_after_seconds

    def _check(self, now: float) -> None:
        assert self._popen is not None
        if all(is_healthy(check, self._popen.pid) for check in self.spec.health):
            if self.state is not ChildState.HEALTHY:
                _logger.info("%s: healthy after %.1f s", self.spec.name, now - self._started)
                self._healthy_since = now
                if self.spec.yields_processor and self._process is not None:
                    yield_processor(self._process)
            self.state = ChildState.HEALTHY
            self.was_healthy = True
            self._last_healthy = now
        else:
            self._without_health(now)
        self._next_check = now + _SECONDS_BETWEEN_CHECKS.get(
            self.state, _SECONDS_BETWEEN_CHECKS_WHEN_HEALTHY
        )

    def _patience_seconds(self) -> float:
        """Wait long for what starts or is busy, and not for what has given up."""
        if self.state is ChildState.STARTING:
            return self.spec.start_seconds
        if any(has_given_up(check) for check in self.spec.health):
            return min(_GIVEN_UP_SECONDS, self.spec.hang_seconds)
        return self.spec.hang_seconds

    def _without_health(self, now: float) -> None:
        if self.state is ChildState.HEALTHY:
            self.state = ChildState.UNHEALTHY
            _logger.warning("%s: does not answer", self.spec.name)
        patience = self._patience_seconds()
        if now - self._last_healthy > patience:
            _logger.warning("%s: not healthy for %.0f s, killed", self.spec.name, patience)
            self.kill()
