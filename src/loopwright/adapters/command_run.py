"""Runs one command in a waiting jail: feeds it, listens to it, and ends it at its limits.

The clock of a command starts when its own process does, so that a busy host is not held against it.
"""

import os
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from enum import StrEnum

from loopwright.adapters.slot_process import SlotProcess, WarmJail
from loopwright.adapters.streams import Stream
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import CommandRequest

_START_SECONDS = 60.0
_END_SECONDS = 20.0
"""How long a killed jail may take to be gone."""
_CHUNK_BYTES = 1 << 16
_STATUS_BYTES = 1 << 12
_HEADER = struct.Struct("<4I4Q")
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


class Kill(StrEnum):
    """Why we ended a command ourselves."""

    TIMEOUT = "timeout"
    OUTPUT_LIMIT = "output_limit"
    CLOSED = "closed"
    NO_START = "no_start"


class CommandRun:
    """One run of a command; use once."""

    def __init__(
        self,
        slot: SlotProcess,
        request: CommandRequest,
        *,
        owner: int,
        closing: int,
        is_starved: Callable[[float], bool] = lambda seconds: False,
    ) -> None:
        """Prepare it.

        ``owner`` is the user id of the program on the host, ``closing`` a descriptor that gets
        readable when the run must end; ``is_starved`` tells of a command that is about to be killed
        after so many seconds whether the host kept it from running.
        """
        limits = request.limits
        self.stdout = Stream(limits.output_bytes, limits.drain_bytes)
        self.stderr = Stream(limits.output_bytes, limits.drain_bytes)
        self.status = Stream(_STATUS_BYTES, _STATUS_BYTES)
        self.killed_for: Kill | None = None
        self.wall_seconds = 0.0
        self.is_suspect = False
        """Whether a timeout says more about the host than about the command."""
        self._slot, self._request, self._owner = slot, request, owner
        self._stdin = memoryview(request.stdin)
        self._closing, self._is_starved = closing, is_starved
        self._started_at: float | None = None
        self._is_ending = self._is_reported = False
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], bool]] = {}

    def run(self, variables: Mapping[str, str], *, address_bytes: int) -> None:
        """Run to the end, until no process of the program is left.

        Raises:
            SandboxUnavailable: the jail cannot be ended.
        """
        jail = self._slot.jail
        assert jail is not None
        with ExitStack() as stack:
            self._send(jail, stack, variables, address_bytes)
            self._listen(jail.control.fileno(), self.status)
            self._launcher = self._slot.fileno()
            self._watch(self._launcher, self._hear_launcher)
            self._watch(self._closing, self._close)
            self._deadline = time.monotonic() + _START_SECONDS
            while not (jail.is_gone or self._is_reported):
                self._serve_once()
            self._drain()

    def _send(
        self,
        jail: WarmJail,
        stack: ExitStack,
        variables: Mapping[str, str],
        address_bytes: int,
    ) -> None:
        """Give the request and the program's ends of its streams to process 1 of the jail."""
        limits = self._request.limits
        words = (*self._request.argv, *(f"{name}={value}" for name, value in variables.items()))
        strings = os.fsencode("".join(f"{word}\0" for word in words))
        header = _HEADER.pack(
            *(len(strings), len(self._request.argv), len(variables), jail.plan.has_python),
            *(limits.cpu_seconds, limits.disk_bytes, limits.max_processes + 1),
            address_bytes,
        )
        with ExitStack() as theirs:
            ends = [self._pipe_in(stack, theirs)]
            ends += [self._pipe_out(stream, stack, theirs) for stream in (self.stdout, self.stderr)]
            for end in ends:
                os.fchown(end, self._owner, self._owner)  # so that /dev/stdout can be opened
            with suppress(
                BrokenPipeError, ConnectionResetError
            ):  # then it is gone, as we shall see
                socket.send_fds(jail.control, [header], ends)
                jail.control.sendall(strings)

    def _pipe_in(self, stack: ExitStack, theirs: ExitStack) -> int:
        end, ours = os.pipe2(os.O_CLOEXEC)
        theirs.callback(os.close, end)
        if not self._stdin:
            os.close(ours)
            return end
        os.set_blocking(ours, False)
        close = stack.enter_context(ExitStack())
        close.callback(os.close, ours)

        def write() -> bool:
            try:
                self._stdin = self._stdin[os.write(ours, self._stdin[:_CHUNK_BYTES]) :]
            except BlockingIOError:
                return False
            except BrokenPipeError:
                self._stdin = self._stdin[:0]
            if not self._stdin:
                self._forget(ours)
                close.close()
            return False

        self._watch(ours, write, select.POLLOUT)
        return end

    def _pipe_out(self, stream: Stream, stack: ExitStack, theirs: ExitStack) -> int:
        ours, end = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, ours)
        theirs.callback(os.close, end)
        os.set_blocking(ours, False)
        self._listen(ours, stream)
        return end

    def _listen(self, ours: int, stream: Stream) -> None:
        os.set_blocking(ours, False)
        self._watch(ours, lambda: self._read(ours, stream))

    def _watch(self, fd: int, handler: Callable[[], bool], events: int = select.POLLIN) -> None:
        self._handlers[fd] = handler
        self._poll.register(fd, events)

    def _forget(self, fd: int) -> None:
        del self._handlers[fd]
        self._poll.unregister(fd)

    def _serve_once(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            self._expire()
            return
        for fd, _ in self._poll.poll(left * 1000):
            if fd in self._handlers:
                self._handlers[fd]()

    def _expire(self) -> None:
        if self._is_ending:
            raise SandboxUnavailable(f"a killed jail was not gone after {_END_SECONDS:.0f} s")
        if self._started_at is not None:
            self.is_suspect = self._is_starved(time.monotonic() - self._started_at)
        self._kill(Kill.NO_START if self._started_at is None else Kill.TIMEOUT)

    def _read(self, ours: int, stream: Stream) -> bool:
        """Read once; say whether there may be more."""
        try:
            chunk = os.read(ours, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            self._forget(ours)
            return False
        stream.feed(chunk)
        if stream is self.status:
            self._note_status()
        elif stream.is_over:
            self._kill(Kill.OUTPUT_LIMIT)
        return True

    def _note_status(self) -> None:
        """Start the clock at the first line; at the second process 1 has reaped all others."""
        num_lines = self.status.data.count(b"\n")
        if num_lines and self._started_at is None:
            self._started_at = time.monotonic()
            self._deadline = self._started_at + self._request.limits.wall_seconds
        if num_lines > 1:
            self._is_reported = True
            self._kill(None)

    def _hear_launcher(self) -> bool:
        self._slot.read_message()
        return False

    def _close(self) -> bool:
        self._forget(self._closing)
        self._kill(Kill.CLOSED)
        return False

    def _kill(self, reason: Kill | None) -> None:
        """End all processes of the run, once; the first reason counts."""
        if self._is_ending:
            return
        self._is_ending, self.killed_for = True, reason
        if self._started_at is not None:
            self.wall_seconds = time.monotonic() - self._started_at
        self._deadline = time.monotonic() + _END_SECONDS
        self._slot.kill()

    def _drain(self) -> None:
        """Read what is left in the pipes; nobody writes to them any more."""
        for fd, handler in list(self._handlers.items()):
            if fd not in (self._launcher, self._closing):
                while handler():
                    pass
        if self.killed_for is None and (self.stdout.is_over or self.stderr.is_over):
            self.killed_for = Kill.OUTPUT_LIMIT
