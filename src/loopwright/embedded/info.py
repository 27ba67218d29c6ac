"""The status file of a supervisor: what runs where, and how it is."""

from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field

from loopwright.contracts.base import Contract
from loopwright.contracts.failures import UserError
from loopwright.embedded.plan import Connections
from loopwright.embedded.processes import ProcessId, is_alive
from loopwright.embedded.state_folder import StateFolder, write_private


class ChildState(StrEnum):
    """What a child process is doing."""

    WAITING = "waiting"
    STARTING = "starting"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    BACKING_OFF = "backing_off"
    STOPPED = "stopped"


class StackState(StrEnum):
    """What the supervisor is doing."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class ChildInfo(Contract):
    """One child process."""

    state: ChildState = ChildState.WAITING
    process: ProcessId | None = None
    """None while it does not run."""
    restarts: int = 0
    last_exit: str | None = None
    """How it last ended: ``exit 1`` or ``SIGKILL``."""
    log: Path

    @property
    def pid(self) -> int | None:
        """Process id; None while it does not run."""
        return self.process.pid if self.process else None


class StackInfo(Connections):
    """The platform on this machine; holds its keys, so the file is its owner's only."""

    supervisor: ProcessId
    state: StackState = StackState.STARTING
    failure: str | None = None
    """Why the start failed."""
    children: dict[str, ChildInfo] = Field(default_factory=dict)

    @property
    def is_healthy(self) -> bool:
        """Whether the supervisor lives and every child is healthy."""
        return (
            self.state is StackState.RUNNING
            and is_alive(self.supervisor)
            and all(child.state is ChildState.HEALTHY for child in self.children.values())
        )

    @classmethod
    def load(cls, state_dir: Path) -> Self | None:
        """Read what the last supervisor of a state folder wrote; None if there was none.

        Raises:
            UserError: the file is not one of this version.
        """
        path = StateFolder(state_dir.resolve()).info
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise UserError(
                f"{path} is not a status file of this version; stop the platform with the version "
                f"that started it, or remove the file if nothing of it runs"
            ) from error

    def save(self) -> None:
        """Replace the status file."""
        write_private(StateFolder(self.state_dir).info, self.model_dump_json(indent=2) + "\n")
