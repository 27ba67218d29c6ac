"""The workspaces of ``loopwright sandbox run``: from a folder or the platform, and kept by it."""

import logging
import os
from functools import cached_property
from pathlib import Path

from loopwright.adapters.collect import WorkspaceTooLarge, collect, open_folder
from loopwright.adapters.workspaces import Workspaces
from loopwright.cli.options import ADDRESS
from loopwright.contracts.failures import StoreError, UserError, WorkspaceMissing
from loopwright.contracts.workspaces import Workspace
from loopwright.embedded.locks import is_held
from loopwright.embedded.state_folder import StateFolder

_logger = logging.getLogger(__name__)
_MAX_FOLDER_BYTES = 1 << 30


class SandboxWorkspaces:
    """What the platform in a state folder, or the one that the environment names, has and keeps."""

    def __init__(self, state: Path) -> None:
        """Name the state folder; nothing is asked yet."""
        self._state = state
        self.blobs: Workspaces | None = None
        """Contents of the workspace that was read; None when it carries them all."""

    def read(self, given: str | None) -> Workspace:
        """Read a folder, or load the workspace of a digest.

        Raises:
            UserError: a folder holds too much or cannot be read; nobody has kept the digest, or
                there is no platform to ask.
            StoreError: the platform's store could not give it.
        """
        if given is None:
            return Workspace()
        if Path(given).is_dir():
            return _read_folder(Path(given))
        if self._workspaces is None:
            raise UserError(
                f"--workspace: no platform runs in {self._state} that could have {given}: start "
                f"one with `loopwright up`, name another folder with --state, or set {ADDRESS}"
            )
        self.blobs = self._workspaces
        try:
            return self._workspaces.load(given)
        except WorkspaceMissing as error:
            raise UserError(f"--workspace: {error}; `sandbox run --json` prints digests") from error

    def keep(self, workspace: Workspace) -> bool:
        """Keep a workspace where a platform runs; tell whether it is kept."""
        try:
            if self._workspaces is None:
                return False
            self._workspaces.keep(workspace)
        except StoreError as error:
            _logger.warning("workspace %s is not kept: %s", workspace.digest, error)
            return False
        return True

    @cached_property
    def _workspaces(self) -> Workspaces | None:
        if not os.environ.get(ADDRESS) and not is_held(StateFolder(self._state.resolve()).lock):
            return None
        # Half of the time of a command that needs no platform would go into these.
        from loopwright.cli.connection import open_store, platform_settings
        from loopwright.workers.workspaces import open_workspaces

        settings = platform_settings(self._state)
        return open_workspaces(settings, open_store(settings))


def _read_folder(folder: Path) -> Workspace:
    """Read a folder; what a workspace cannot hold is left out, with a warning."""
    try:
        with open_folder(os.path.realpath(folder)) as opened:
            found = collect(opened, max_bytes=_MAX_FOLDER_BYTES)
    except (WorkspaceTooLarge, OSError) as error:
        raise UserError(f"--workspace: {folder} cannot be copied in: {error}") from error
    for skip in found.skipped:
        _logger.warning("--workspace: %r is left out: %s", skip.path, skip.reason)
    return found.workspace
