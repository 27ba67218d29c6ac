"""What a trainer worker is made of: one model, kept warm between iterations."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from temporalio.client import Client

from loopwright.activities.trainer.build_batch import BuildBatch
from loopwright.activities.trainer.import_policy import ImportPolicy
from loopwright.activities.trainer.train_step import TrainStep
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store


async def compose(
    settings: Settings, client: Client, stack: AsyncExitStack
) -> list[Callable[..., Any]]:
    """Build the activities of the trainer pool."""
    store = open_store(settings)
    return [
        ImportPolicy(store).import_policy,
        BuildBatch(store).build_batch,
        TrainStep(store).train_step,
    ]
