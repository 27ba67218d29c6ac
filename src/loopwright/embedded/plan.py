"""What a supervisor is to run, as data: child processes, their health, and rules of restart."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from loopwright.contracts.base import Contract


class PortOpen(Contract):
    """Healthy when something listens on a port of 127.0.0.1."""

    kind: Literal["port"] = "port"
    port: int


class HttpOk(Contract):
    """Healthy when a GET answers 200."""

    kind: Literal["http"] = "http"
    url: str


class ReadyFile(Contract):
    """Healthy once the process has written its id into a file."""

    kind: Literal["file"] = "file"
    path: Path


HealthCheck = Annotated[PortOpen | HttpOk | ReadyFile, Field(discriminator="kind")]


class ChildSpec(Contract):
    """One supervised process."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables added to the supervisor's own."""
    health: tuple[HealthCheck, ...]
    """All must hold."""
    needs: tuple[str, ...] = ()
    """Children that must be healthy before this one starts."""
    stage: int = 0
    """Children of a higher stage are stopped before those of a lower."""
    start_seconds: float = 120.0
    """Longest time from start to health."""
    hang_seconds: float = 60.0
    """Longest time without health before the process is killed."""
    yields_processor: bool = False
    """Once healthy it runs only while no other process wants the processor."""
    grace_seconds: float = 15.0
    """Time from SIGTERM to SIGKILL."""


class RestartPolicy(Contract):
    """How a child that ended is started again."""

    first_seconds: float = 0.5
    """Pause before the first restart; doubled for each further one."""
    max_seconds: float = 10.0
    reset_after_seconds: float = 10.0
    """Health for so long forgets earlier failures: what was killed starts again at once."""
    max_start_failures: int = 5
    """A child that ends so often and was never healthy makes the start fail."""

    def pause_seconds(self, failures: int) -> float:
        """Give the pause after so many failures in a row, from 1."""
        return min(self.first_seconds * 2.0 ** min(failures - 1, 30), self.max_seconds)


class Connections(Contract):
    """Where the platform is reached."""

    state_dir: Path
    temporal_address: str
    ui_url: str
    s3_endpoint: str
    s3_bucket: str
    s3_access_key: str
    s3_secret_key: str
    engine_url: str
    engine_api_key: str
    model: Path
    """Model directory that the engine starts with."""


class Plan(Contract):
    """All that a supervisor needs."""

    connections: Connections
    children: tuple[ChildSpec, ...]
    """In the order of their start."""
    ports: tuple[int, ...] = ()
    """Ports of 127.0.0.1 that the children listen on, claimed while the supervisor runs."""
    restart: RestartPolicy = RestartPolicy()
