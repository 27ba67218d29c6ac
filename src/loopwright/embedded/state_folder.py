"""Where the platform on one machine keeps its data, logs and status."""

import os
from dataclasses import dataclass
from pathlib import Path

from loopwright.contracts.failures import UserError

DEFAULT_STATE = Path(".loopwright")


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The paths below one state folder."""

    root: Path

    @property
    def run(self) -> Path:
        """Folder of what describes the running platform."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """Folder with a log for each process."""
        return self.root / "logs"

    @property
    def info(self) -> Path:
        """Status file, written by the supervisor."""
        return self.run / "stack.json"

    @property
    def plan(self) -> Path:
        """What the supervisor is to run."""
        return self.run / "plan.json"

    @property
    def lock(self) -> Path:
        """Held by the supervisor while it lives."""
        return self.run / "supervisor.lock"

    @property
    def launch_lock(self) -> Path:
        """Held by whoever starts or stops the supervisor."""
        return self.run / "launch.lock"

    @property
    def ports(self) -> Path:
        """Ports chosen before."""
        return self.root / "ports.json"

    @property
    def credentials(self) -> Path:
        """Keys generated for this state folder."""
        return self.root / "credentials.json"

    def log(self, name: str) -> Path:
        """Name the log of a process."""
        return self.logs / f"{name}.log"

    def ready(self, name: str) -> Path:
        """Name the file by which a worker says that it polls."""
        return self.run / f"{name}.ready"

    def make(self) -> None:
        """Create the folders.

        Raises:
            UserError: they cannot be created.
        """
        try:
            for folder in (self.run, self.logs):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"state folder {self.root}: {error}; name another, --state") from error


def write_private(path: Path, text: str) -> None:
    """Replace a file whole, readable by its owner only."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    partial.replace(path)
