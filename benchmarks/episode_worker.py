"""``python -m benchmarks.episode_worker``: a worker of episodes with the store in its memory.

It serves the episode pool as the platform's own worker does, and the hand-written workflow on
queues of its own, with the same settings and activities.
"""

import asyncio
import os
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from temporalio.worker import Worker

from benchmarks.hand_written import HandWrittenWorkflow
from benchmarks.in_memory import InMemoryEpisodes, scripted_engine
from loopwright.contracts.queues import Pool
from loopwright.workers.bootstrap import make_worker
from loopwright.workers.connection import connect
from loopwright.workers.settings import Settings

HAND_WRITTEN_QUEUE = "hand-written"
EAGER_QUEUE = "hand-written-eager"
"""The same, with activities that need not pass the server's queue: priorities do not hold there."""


async def serve(folder: Path) -> None:
    """Serve until the process is ended."""
    settings = Settings.from_environment()
    client = await connect(settings)
    episodes = InMemoryEpisodes.build(folder, scripted_engine())
    ours = make_worker(Pool.EPISODE, settings, client, episodes.activities)
    config = ours.config()
    config["workflows"] = [HandWrittenWorkflow]
    config["task_queue"] = HAND_WRITTEN_QUEUE
    hand_written = Worker(**config)
    config["task_queue"] = EAGER_QUEUE
    config["disable_eager_activity_execution"] = False
    async with AsyncExitStack() as stack:
        for worker in (ours, hand_written, Worker(**config)):
            await stack.enter_async_context(worker)
        Path(os.environ["LOOPWRIGHT_READY_FILE"]).write_text(f"{os.getpid()}\n")
        await asyncio.Event().wait()


def main() -> None:
    """Serve with a folder for caches."""
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        asyncio.run(serve(Path(folder)))


if __name__ == "__main__":
    main()
