"""``python -m benchmarks.scripted.trainer SECONDS``: a trainer pool whose updates only wait."""

import asyncio
import os
import sys
import time

from temporalio import activity

from loopwright.activities.heartbeats import heartbeating_thread
from loopwright.activities.trainer.build_batch import BuildBatch
from loopwright.activities.trainer.import_policy import ImportPolicy
from loopwright.contracts.queues import Pool
from loopwright.contracts.training import TrainStepRequest, TrainStepResult
from loopwright.core.protocols import ObjectStore
from loopwright.embedded.options import default_model
from loopwright.learning.checkpoints import import_directory
from loopwright.workers.bootstrap import serve, stop_event
from loopwright.workers.connection import connect
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store


class WaitingTrainer:
    """Makes each version of the base policy's weights, after the time that an update takes."""

    def __init__(self, store: ObjectStore, *, seconds: float) -> None:
        """Keep versions in ``store``."""
        self._store = store
        self._seconds = seconds

    @activity.defn(name="trainer.train_step")
    def train_step(self, request: TrainStepRequest) -> TrainStepResult:
        """Wait, then store the next version."""
        started = time.monotonic()
        with heartbeating_thread():
            time.sleep(self._seconds)
            checkpoint = import_directory(
                self._store, default_model(), request.policy, prefix=request.prefix
            )
        return TrainStepResult(
            checkpoint=checkpoint, metrics={}, seconds=time.monotonic() - started
        )


async def run(seconds: float) -> None:
    """Serve until SIGTERM."""
    settings, stop = Settings.from_environment(), stop_event()
    client = await connect(settings)
    store = open_store(settings)
    activities = [
        ImportPolicy(store).import_policy,
        BuildBatch(store).build_batch,
        WaitingTrainer(store, seconds=seconds).train_step,
    ]
    await serve(Pool.TRAINER, settings, client, activities, stop=stop)


if __name__ == "__main__":
    asyncio.run(run(float(sys.argv[1])))
    # A native thread of the Temporal SDK can abort an interpreter that is shutting down.
    os._exit(0)
