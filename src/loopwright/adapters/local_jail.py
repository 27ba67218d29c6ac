"""Jails on this host: one fresh jail for each command, on a fixed number of slots.

Limits, clocks and the judgement of how a command ended are ours, whichever launcher makes the jail.
``deploy/nsjail/README.md`` says what is covered and what is not.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from loopwright.adapters.collect import WorkspaceTooLarge, collect
from loopwright.adapters.command_run import CommandRun
from loopwright.adapters.jail_files import DEPLOY
from loopwright.adapters.judgement import judge
from loopwright.adapters.launchers import ENVIRONMENT, IMAGE_PATH, Launcher, NativeLauncher
from loopwright.adapters.lay_over import lay_out_over
from loopwright.adapters.memory_budget import MemoryBudget, host_budget_bytes
from loopwright.adapters.nsjail import nsjail_launcher
from loopwright.adapters.plans import Plan, plan_of
from loopwright.adapters.root_store import RootStore
from loopwright.adapters.slot_queue import SlotQueue
from loopwright.adapters.slots import Slot, SlotHouse
from loopwright.adapters.start_refusals import refusal
from loopwright.adapters.strictness import strict_variables
from loopwright.contracts.failures import SandboxUnavailable, StoreError
from loopwright.contracts.workspaces import CommandRequest, CommandResult, Workspace
from loopwright.core.protocols import Blobs, Jail, JailRun

_logger = logging.getLogger(__name__)


class LocalJail(Jail):
    """Jails below one root, which several processes may share. Safe from many threads.

    Example:
        ``with LocalJail(Path("/run/loopwright/demo"), num_slots=2) as jail: jail.run(...)``
    """

    def __init__(
        self,
        root: Path,
        *,
        num_slots: int,
        launcher: str = "native",
        memory_bytes: int | None = None,
        may_be_degraded: bool = False,
        blobs: Blobs | None = None,
        roots: RootStore | None = None,
        deploy: Path = DEPLOY,
    ) -> None:
        """Remember what to prepare; nothing is touched before the ``with`` block.

        ``memory_bytes`` bounds the sum of the limits of commands that run at once; by default a
        share of the host's memory. ``may_be_degraded`` allows jails without control groups.
        ``blobs`` has the contents that workspaces do not carry, ``roots`` the root file systems and
        packages that commands may name.
        """
        self._memory = MemoryBudget(memory_bytes or host_budget_bytes())
        self._may_be_degraded, self._blobs = may_be_degraded, blobs
        self._roots = roots
        self._root, self._num_slots, self._deploy = root, num_slots, deploy
        self._launcher_name = launcher

    def __enter__(self) -> "LocalJail":
        """Prepare the slots, and clear what a killed predecessor left in this root.

        Raises:
            SandboxUnavailable: this host cannot run jails; the message says why.
        """
        self._launcher = _launcher(self._launcher_name, self._deploy)
        try:
            self._house = SlotHouse(
                self._root,
                num_slots=self._num_slots,
                launcher=self._launcher,
                deploy=self._deploy,
                may_be_degraded=self._may_be_degraded,
                roots=self._roots,
                blobs=self._blobs,
            )
        except OSError as error:
            raise SandboxUnavailable(
                f"slots for jails cannot be made on this host: {error}; see `loopwright doctor`"
            ) from error
        self._closing = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._free = SlotQueue(self._house.slots)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what still runs, wait for its slots, and take everything away."""
        os.eventfd_write(self._closing, 1)
        self._free.close()
        os.close(self._closing)
        self._house.close()

    def run(self, workspace: Workspace, request: CommandRequest) -> JailRun:
        """Run one command on a copy of ``workspace``, in the next free slot.

        Raises:
            SandboxUnavailable: the host could not run it; says nothing of the command.
            TaskError: the workspace does not fit its limits, or has an unsafe path; or there are
                too many packages.
        """
        if (refused := refusal(request)) is not None:
            return JailRun(result=refused, workspace=workspace)
        with self._memory.reserve(request.limits.memory_bytes), self._slot(request) as slot:
            try:
                return self._run_on(slot, workspace, request)
            except OSError as error:
                raise SandboxUnavailable(f"the jail failed in {slot.folder}: {error}") from error

    @contextmanager
    def _slot(self, request: CommandRequest) -> Iterator[Slot]:
        """Take a slot, and leave it with the next jail in the making."""
        plan = plan_of(request)
        slot = self._free.take(plan)
        try:
            slot.require(plan)
            yield slot
        except BaseException:
            slot.reset()
            raise
        else:
            _renew(slot, plan)
        finally:
            self._free.give_back(slot)

    def _run_on(self, slot: Slot, workspace: Workspace, request: CommandRequest) -> JailRun:
        jail = slot.process.wait_until_ready()
        base = self._blobs.load(request.base) if request.base and self._blobs else Workspace()
        lay_out_over(base, workspace, jail.workspace, owner=slot.owner, blobs=self._blobs)
        result = self._run_program(slot, request)
        if not request.collect:
            return JailRun(result=result, workspace=workspace)
        return self._collect(jail.workspace, workspace, result)

    def _run_program(self, slot: Slot, request: CommandRequest) -> CommandResult:
        limits, cgroup = request.limits, slot.cgroup
        run = CommandRun(
            slot.process,
            request,
            owner=slot.owner,
            closing=self._closing,
            is_starved=slot.is_starved,
        )
        if cgroup is not None:
            cgroup.begin(
                memory_bytes=limits.memory_bytes,
                max_processes=limits.max_processes + self._launcher.num_own_processes,
            )
        address_bytes = 0 if cgroup else limits.memory_bytes
        variables = ENVIRONMENT | strict_variables(request.strict)
        if request.root:
            variables["PATH"] = IMAGE_PATH
        run.run(variables | request.env, address_bytes=address_bytes)
        assert slot.process.jail is not None
        usage = cgroup.usage() if cgroup else None
        return judge(run, usage, request, why=slot.process.jail.explain())

    def _collect(self, folder: int, given: Workspace, result: CommandResult) -> JailRun:
        """Read what the command left; too much for a workspace is over the output limit.

        What it wrote was its memory, so that more than this can only be holes.
        """
        limits = result.limits
        max_bytes = min(limits.disk_bytes, limits.memory_bytes + given.num_bytes)
        try:
            left = collect(folder, max_bytes=max_bytes, blobs=self._blobs)
        except WorkspaceTooLarge:
            ended = {"exit_code": None, "signal": None, "output_limit": True}
            return JailRun(result=result.model_copy(update=ended), workspace=given)
        return JailRun(result=result, workspace=left.workspace, skipped=left.skipped)


def _renew(slot: Slot, plan: Plan) -> None:
    """Have the next jail made; one that cannot be is the trouble of who needs it."""
    try:
        slot.renew(plan)
    except (SandboxUnavailable, StoreError) as error:
        _logger.warning("the next jail in %s cannot be made: %s", slot.folder, error)
        slot.reset()


def _launcher(name: str, deploy: Path) -> Launcher:
    if name == NativeLauncher.name:
        return NativeLauncher()
    return nsjail_launcher((deploy / "jail.cfg").read_text())
