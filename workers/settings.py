"""Environment variables of a worker, read once into one frozen record."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from loopwright.contracts.base import Contract, refusals
from loopwright.contracts.failures import UserError

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Settings(Contract):
    """Where a worker finds the rest of the platform."""

    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"
    deployment: str = "loopwright"
    """Name of the Worker Deployment that the workers of a cluster are of."""
    build_id: str | None = None
    """Build of the platform that this worker is; None where builds are not told apart.

    Not of an engine's worker, which serves all builds.
    """
    prepares_namespace: bool = False
    """Whether workers create the search attributes that the namespace lacks."""
    s3_endpoint: str | None = None
    """None for Amazon's own."""
    s3_bucket: str = "loopwright"
    s3_access_key: str | None = None
    """None takes the credentials that boto3 finds."""
    s3_secret_key: str | None = None
    s3_region: str = "us-east-1"
    engine_urls: dict[str, str] = Field(default_factory=dict)
    """Base URL of each engine's server, by the engine's name."""
    engine_api_key: str | None = None
    engine: str = "main"
    """The engine this worker stands beside (engine pool only)."""
    engine_model: Path | None = None
    """Model directory the engine was started with (engine pool only)."""
    state_dir: Path = Path(".loopwright")
    """Folder for this host's caches."""
    workspace_cache_bytes: int = Field(default=1 << 30, ge=1 << 20)
    """Most that the cache of workspaces in it may hold (episode pool and commands)."""
    sandbox_slots: int = Field(default=2, ge=1, le=1024)
    """Jails at once on this host (episode pool only)."""
    sandbox_launcher: Literal["native", "nsjail"] = "native"
    """What makes the jails; both make the same."""
    sandbox_degraded: bool = False
    """Whether jails may run without root or control groups, with weaker limits."""
    roots_dir: Path = Path("/var/lib/loopwright/roots")
    """Root file systems and package folders of this host; jails must be able to reach it."""
    grace_seconds: float = Field(default=30, ge=0)
    """Time that running work gets to come to a rest when the worker is told to stop.

    An episode rests after a turn, so more than a turn takes.
    """
    max_episodes: int = Field(default=64, ge=1)
    """Episode activities at once (episode pool only)."""
    engine_max_concurrent: int | None = Field(default=None, ge=1)
    """Most completions that one engine is asked for at once (episode pool only).

    It is asked for fewer where it says that it bears no more; none is as many as ``max_episodes``.
    """

    @field_validator("s3_endpoint")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError(f"expected http://HOST:PORT or https://HOST, got {value!r}")
        return value

    @field_validator("deployment", "build_id")
    @classmethod
    def _is_version(cls, value: str | None) -> str | None:
        if value is not None and not _VERSION.fullmatch(value):
            raise ValueError(f"expected letters, digits, '.', '_' and '-', got {value!r}")
        return value

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read the ``LOOPWRIGHT_*`` variables.

        Raises:
            UserError: a variable does not hold what its setting takes.
        """
        values: dict[str, object] = {}
        for name in cls.model_fields:
            raw = environment.get(f"LOOPWRIGHT_{name.upper()}")
            if raw:
                values[name] = _engine_urls(raw) if name == "engine_urls" else raw
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise UserError("; ".join(map(_as_variable, refusals(error)))) from error


def _as_variable(refusal: str) -> str:
    name, _, rest = refusal.partition(": ")
    return f"LOOPWRIGHT_{name.upper()}: {rest}"


def _engine_urls(raw: str) -> dict[str, str]:
    """Read ``main=http://host:port,other=http://...``."""
    pairs = [entry.partition("=") for entry in raw.split(",")]
    wrong = [name for name, _, url in pairs if not url.startswith(("http://", "https://"))]
    if wrong:
        raise UserError(
            f"LOOPWRIGHT_ENGINE_URLS: expected NAME=http://HOST:PORT[,NAME=...], got {raw!r}"
        )
    return {name.strip(): url.strip().rstrip("/") for name, _, url in pairs}
