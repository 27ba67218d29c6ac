"""The resident process of a slot, which makes its jails, one at a time and before they are needed.

A jail serves one command. Its process 1 waits on a control socket for the request; the workspace is
mounted where only the slot's process and the jail see it, and is reached by a folder descriptor.
"""

import os
import select
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loopwright.adapters.launchers import ENVIRONMENT
from loopwright.adapters.plans import Plan
from loopwright.contracts.failures import SandboxUnavailable

READY_SECONDS = 60.0
_GONE_SECONDS = 20.0
MAX_BYTES, MAX_WORDS = 1 << 16, 256
"""Most that the launcher takes as one message."""
_REPLY_BYTES = 4096
_LOG_BYTES = 1 << 16


@dataclass(slots=True)
class WarmJail:
    """A jail that waits for its one command."""

    plan: Plan
    control: socket.socket
    log: int
    workspace: int = -1
    """Descriptor of the empty workspace's folder; -1 until it is there."""
    is_ready: bool = False
    is_killed: bool = False
    """Whether the launcher was told to end it."""
    is_gone: bool = False
    """Whether none of its processes is left."""
    errors: list[str] = field(default_factory=list)

    def close(self) -> None:
        """Let go of it; its launcher sees to its end."""
        self.control.close()
        os.close(self.log)
        if self.workspace >= 0:
            os.close(self.workspace)

    def explain(self) -> str:
        """Say what went wrong, from what the launcher and nsjail said."""
        with suppress(BlockingIOError):
            text = os.read(self.log, _LOG_BYTES).decode("utf-8", "replace")
            marks = ("[E]", "[F]", "[W]")
            self.errors += [line for line in text.splitlines() if line.startswith(marks)]
        return " | ".join(self.errors[-5:]) or "no reason is known"


class SlotProcess:
    """Starts and speaks to the launcher of one slot; used by one thread at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        """Remember how it is started; ``{}`` in the command stands for its socket."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._num_going = 0
        self.jail: WarmJail | None = None

    @property
    def plan(self) -> Plan | None:
        """Say what the waiting jail is for; None when there is none."""
        return self.jail.plan if self.jail else None

    @property
    def pid(self) -> int | None:
        """Give the launcher's process id; None while there is none."""
        return self._process.pid if self._process else None

    def fileno(self) -> int:
        """Give the descriptor that gets readable when the launcher has something to say."""
        return self._socket.fileno()

    def prepare(self, plan: Plan, words: Sequence[str]) -> None:
        """Have the next jail made once the one before is gone, without waiting for it.

        Raises:
            SandboxUnavailable: the launcher does not start, or cannot be told so much.
        """
        message = os.fsencode("P" + "".join(f"{word}\0" for word in words))
        if len(message) > MAX_BYTES or len(words) > MAX_WORDS:
            raise SandboxUnavailable(
                f"the making of a jail takes {len(message)} bytes in {len(words)} words to tell, "
                f"expected at most {MAX_BYTES} in {MAX_WORDS}: keep roots and packages in a folder "
                "with a shorter path"
            )
        if self._process is None:
            self._start()
        ours, theirs = socket.socketpair()
        log, log_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.jail = WarmJail(plan, ours, log)
        try:
            socket.send_fds(self._socket, [message], [theirs.fileno(), log_end])
        except OSError as error:
            self.discard()
            raise SandboxUnavailable(f"the slot's launcher does not answer: {error}") from error
        finally:
            theirs.close()
            os.close(log_end)

    def wait_until_ready(self) -> WarmJail:
        """Give the jail once it waits for its command.

        Raises:
            SandboxUnavailable: it could not be made; the message says why.
        """
        jail = self.jail
        assert jail is not None
        deadline = time.monotonic() + READY_SECONDS
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(jail.control, select.POLLIN)
        while not (jail.is_ready and jail.workspace >= 0):
            found = dict(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
            if self.fileno() in found:
                self.read_message()
            if jail.control.fileno() in found and not jail.is_ready:
                jail.is_ready = jail.control.recv(16) == b"ready\n"
                poll.unregister(jail.control)
            if not found or jail.is_gone:
                reason = jail.explain() if found else f"it was not ready in {READY_SECONDS:.0f} s"
                self.discard()
                raise SandboxUnavailable(f"a jail cannot be made: {reason}")
        return jail

    def read_message(self) -> None:
        """Take what the launcher says of its jail, or of those before, whose end nobody awaits."""
        assert self.jail is not None
        message, descriptors = self._receive()
        kind, text = message[:1], message[1:].decode("utf-8", "replace")
        if kind and self._num_going:
            self._num_going -= kind == b"G"
            for descriptor in descriptors:
                os.close(descriptor)
        elif kind == b"W":
            (self.jail.workspace,) = descriptors
        elif kind == b"E":
            self.jail.errors.append(text)
        elif kind == b"G":
            self.jail.is_gone = True
        else:
            self.jail.errors.append("the slot's launcher ended")
            self.jail.is_gone = True
            self._stop()

    def kill(self) -> None:
        """Have every process of the jail killed, without waiting for it."""
        assert self.jail is not None
        if not self.jail.is_killed:
            self.jail.is_killed = True
            with suppress(OSError):
                self._socket.send(b"K")

    def discard(self) -> None:
        """Let go of the jail, whatever its state; it ends before the next one is made."""
        if self.jail is None:
            return
        if not self.jail.is_gone:
            self.kill()
            self._num_going += 1
        self.jail.close()
        self.jail = None

    def close(self) -> None:
        """End the launcher, and with it the jail and every mount of the slot."""
        jail, self.jail = self.jail, None
        self._stop()
        if jail is not None:
            jail.close()

    def _receive(self) -> tuple[bytes, list[int]]:
        """Take one message; a launcher that died unheard leaves its last words behind an error."""
        for _ in range(2):
            with suppress(ConnectionResetError):
                return socket.recv_fds(self._socket, _REPLY_BYTES, 1)[:2]
        return b"", []

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        end = theirs.fileno()
        try:
            self._process = subprocess.Popen(
                [word.replace("{}", str(end)) for word in self._command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(end,),
                env=ENVIRONMENT,  # of an interpreter that waits; nothing else reads it
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise SandboxUnavailable(f"the slot's launcher does not start: {error}") from error
        finally:
            theirs.close()
        self._socket = ours

    def _stop(self) -> None:
        """End the launcher: it goes when its socket is closed, and is killed when it does not."""
        process, self._process = self._process, None
        self._num_going = 0
        if process is None:
            return
        self._socket.close()
        try:
            process.wait(_GONE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def launcher_command(
    binary: Path, folder: Path, *, uid: int, procs_files: Sequence[str]
) -> tuple[str, ...]:
    """Give the command of a slot's launcher, with ``{}`` for its socket."""
    return (str(binary), "{}", str(folder), str(uid), str(len(procs_files)), *procs_files)
