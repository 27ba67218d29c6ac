"""Runs one jail under its guard: feeds it, listens to it, and ends it at its limits.

The clock of a command starts when its own process does, so that a busy host is not held against it.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum

from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import Limits

_START_SECONDS = 60.0
_END_SECONDS = 20.0
"""How long a killed jail may take to be gone."""
_CHUNK_BYTES = 1 << 16
_LOG_BYTES = 1 << 16


class Kill(StrEnum):
    """Why we ended a command ourselves."""

    TIMEOUT = "timeout"
    OUTPUT_LIMIT = "output_limit"
    CLOSED = "closed"
    NO_START = "no_start"


@dataclass(slots=True)
class Stream:
    """What came out of one pipe, cut at what is kept."""

    max_kept_bytes: int
    max_bytes: int
    data: bytearray = field(default_factory=bytearray, init=False)
    num_bytes: int = field(default=0, init=False)

    def feed(self, chunk: bytes) -> None:
        """Take what was read."""
        self.num_bytes += len(chunk)
        self.data += chunk[: self.max_kept_bytes - len(self.data)]

    @property
    def is_truncated(self) -> bool:
        """Whether bytes were dropped."""
        return self.num_bytes > len(self.data)

    @property
    def is_over(self) -> bool:
        """Whether more came than may come."""
        return self.num_bytes > self.max_bytes


class GuardedProcess:
    """One run of a command; use once."""

    def __init__(self, *, stdin: bytes, limits: Limits, uid: int, closing: int) -> None:
        """Prepare it; ``closing`` is a descriptor that gets readable when the run must end."""
        self.stdout = Stream(limits.output_bytes, limits.drain_bytes)
        self.stderr = Stream(limits.output_bytes, limits.drain_bytes)
        self.status = Stream(_LOG_BYTES, _LOG_BYTES)
        self.log = Stream(_LOG_BYTES, _LOG_BYTES)
        self.killed_for: Kill | None = None
        self.wall_seconds = 0.0
        self._stdin = memoryview(stdin)
        self._limits, self._uid, self._closing = limits, uid, closing
        self._started_at: float | None = None
        self._is_ending = False
        self._selector = selectors.DefaultSelector()
        self._deadline = 0.0

    def run(self, command: Callable[[int, int], list[str]]) -> None:
        """Run to the end; ``command`` is given the descriptors of log and status.

        Raises:
            SandboxUnavailable: the process cannot be started, or cannot be ended.
        """
        with ExitStack() as stack:
            stack.callback(self._selector.close)
            guard = self._start(command, stack)
            self._pidfd = os.pidfd_open(guard.pid)
            stack.callback(os.close, self._pidfd)
            stack.callback(self._end, guard)
            self._selector.register(self._pidfd, selectors.EVENT_READ)
            self._selector.register(self._closing, selectors.EVENT_READ, self._close)
            self._deadline = time.monotonic() + _START_SECONDS
            self._serve()
            self._drain()

    def _start(
        self, command: Callable[[int, int], list[str]], stack: ExitStack
    ) -> "subprocess.Popen[bytes]":
        """Start the guard; the jail's ends of all pipes are closed here afterwards."""
        with ExitStack() as theirs:
            stdin_end = self._pipe_in(stack, theirs)
            ends = [
                self._pipe_out(stream, stack, theirs)
                for stream in (self.stdout, self.stderr, self.log, self.status)
            ]
            for end in (stdin_end, *ends[:2]):
                os.fchown(end, self._uid, self._uid)  # so that /dev/stdout can be opened inside
            try:
                return subprocess.Popen(
                    command(ends[2], ends[3]),
                    stdin=stdin_end,
                    stdout=ends[0],
                    stderr=ends[1],
                    pass_fds=ends[2:],
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise SandboxUnavailable(f"the jail's guard does not start: {error}") from error

    def _pipe_in(self, stack: ExitStack, theirs: ExitStack) -> int:
        end, ours = os.pipe2(os.O_CLOEXEC)
        theirs.callback(os.close, end)
        os.set_blocking(ours, False)
        close = ExitStack()
        close.callback(os.close, ours)
        stack.enter_context(close)

        def write() -> None:
            try:
                self._stdin = self._stdin[os.write(ours, self._stdin[:_CHUNK_BYTES]) :]
            except BlockingIOError:
                return
            except BrokenPipeError:
                self._stdin = self._stdin[:0]
            if not self._stdin:
                self._selector.unregister(ours)
                close.close()

        if self._stdin:
            self._selector.register(ours, selectors.EVENT_WRITE, write)
        else:
            close.close()
        return end

    def _pipe_out(self, stream: Stream, stack: ExitStack, theirs: ExitStack) -> int:
        ours, end = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, ours)
        theirs.callback(os.close, end)
        os.set_blocking(ours, False)
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._read(ours, stream))
        return end

    def _serve(self) -> None:
        """Answer whatever happens until the guard, and so the last process, is gone."""
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                self._expire()
                continue
            for key, _ in self._selector.select(left):
                if key.fd == self._pidfd:
                    return
                key.data()

    def _expire(self) -> None:
        if self._is_ending:
            raise SandboxUnavailable(f"a killed jail was not gone after {_END_SECONDS:.0f} s")
        self._kill(Kill.NO_START if self._started_at is None else Kill.TIMEOUT)

    def _read(self, ours: int, stream: Stream) -> bool:
        """Read once; say whether there may be more."""
        try:
            chunk = os.read(ours, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(ours)
            return False
        stream.feed(chunk)
        if stream is self.status:
            self._note_status()
        elif stream is not self.log and stream.is_over:
            self._kill(Kill.OUTPUT_LIMIT)
        return True

    def _note_status(self) -> None:
        """Start the clock at the first line; after the second nothing is left to wait for."""
        num_lines = self.status.data.count(b"\n")
        if num_lines and self._started_at is None:
            self._started_at = time.monotonic()
            self._deadline = self._started_at + self._limits.wall_seconds
        if num_lines > 1:
            self._kill(None)

    def _close(self) -> None:
        self._selector.unregister(self._closing)
        self._kill(Kill.CLOSED)

    def _kill(self, reason: Kill | None) -> None:
        """End all processes of the run, once; the first reason counts."""
        if self._is_ending:
            return
        self._is_ending, self.killed_for = True, reason
        if self._started_at is not None:
            self.wall_seconds = time.monotonic() - self._started_at
        self._deadline = time.monotonic() + _END_SECONDS
        signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)

    def _drain(self) -> None:
        """Read what is left in the pipes; nobody writes to them any more."""
        for key in list(self._selector.get_map().values()):
            if key.events == selectors.EVENT_READ and key.data and key.fd != self._closing:
                while key.data():
                    pass
        if self.killed_for is None and (self.stdout.is_over or self.stderr.is_over):
            self.killed_for = Kill.OUTPUT_LIMIT

    def _end(self, guard: "subprocess.Popen[bytes]") -> None:
        """Leave no process behind, whatever stopped us."""
        if guard.poll() is None:
            guard.terminate()
            with suppress(subprocess.TimeoutExpired):
                guard.wait(_END_SECONDS)
