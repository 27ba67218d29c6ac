"""Episode workers do without torch, and what they play does not have to."""

import asyncio
import sys

from temporalio.testing import WorkflowEnvironment

from loopwright.embedded.options import default_model
from loopwright.trajectories.rendering import Renderer

_SCRIPT = """
import asyncio, importlib.util, sys
from loopwright.contracts.queues import Pool
from loopwright.embedded.options import default_model
from loopwright.sdk.connection import connect
from loopwright.workers.bootstrap import make_worker
from loopwright.workers.settings import Settings
from loopwright.workers.tokenizers_alone import import_tokenizers_alone

async def make() -> None:
    make_worker(Pool.EPISODE, Settings(), await connect(*sys.argv[1:]), [])

import_tokenizers_alone()
import loopwright.workers.compose_episode
from loopwright.trajectories.rendering import Renderer

asyncio.run(make())
print(Renderer(default_model()).fingerprint)
print("torch" in sys.modules, importlib.util.find_spec("torch") is not None, flush=True)
"""


async def test_episode_worker_renders_alike_without_loading_torch(
    temporal: WorkflowEnvironment,
) -> None:
    client = temporal.client
    address = client.service_client.config.target_host
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _SCRIPT, address, client.namespace), stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    assert told.decode().split() == [Renderer(default_model()).fingerprint, "False", "True"]
