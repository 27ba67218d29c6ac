"""The console script against a server whose workers are fakes."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from tests.workflows.conftest import client as temporal_client
from tests.workflows.conftest import fakes

__all__ = ["fakes", "loopwright", "temporal_client"]


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Awaitable[Done]]


async def run_command(*words: str, folder: Path, environment: dict[str, str]) -> Done:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loopwright.cli", *words),
        cwd=folder,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert b"Traceback" not in err, err.decode()
    return Done(process.returncode or 0, out.decode(), err.decode())


@pytest.fixture
def loopwright(temporal_client: Client, tmp_path: Path) -> Command:
    """Give the console script, in an empty folder, connected to the server."""
    address = temporal_client.service_client.config.target_host

    async def run(*words: str) -> Done:
        environment = {
            "LOOPWRIGHT_TEMPORAL_ADDRESS": address,
            "LOOPWRIGHT_TEMPORAL_NAMESPACE": temporal_client.namespace,
            "LOOPWRIGHT_S3_ENDPOINT": "http://127.0.0.1:9",
            "LOOPWRIGHT_S3_ACCESS_KEY": "nobody",
            "LOOPWRIGHT_S3_SECRET_KEY": "nothing",
        }
        return await run_command(*words, folder=tmp_path, environment=environment)

    return run
