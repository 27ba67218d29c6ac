"""Workers that come and go while there is work: every task reaches one that is there for it."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from loopwright.embedded.temporal_settings import server_arguments
from tests.conftest import binary

ATTEMPTS: list[int] = []


@activity.defn
async def work() -> None:
    """Take a moment, and note which attempt at it this is."""
    ATTEMPTS.append(activity.info().attempt)
    await asyncio.sleep(0.02)


@workflow.defn(sandboxed=False)
class Worklist:
    """Has one thing done after another."""

    @workflow.run
    async def run(self, activities: str) -> None:
        for _ in range(5):
            await workflow.execute_activity(
                work,
                task_queue=activities,
                start_to_close_timeout=timedelta(seconds=60),
                heartbeat_timeout=timedelta(seconds=2),
            )


@asynccontextmanager
async def worklists(
    client: Client, *, queue: str, count: int
) -> AsyncIterator["asyncio.Future[list[None]]"]:
    async with Worker(client, task_queue=f"{queue}-workflows", workflows=[Worklist]):
        handles = [
            await client.start_workflow(
                Worklist.run, queue, id=f"{queue}-{i}", task_queue=f"{queue}-workflows"
            )
            for i in range(count)
        ]
        yield asyncio.gather(*(handle.result() for handle in handles))


async def test_no_task_is_lost_to_workers_that_stop_while_they_ask_for_one() -> None:
    queue = str(uuid.uuid4())
    async with (
        await WorkflowEnvironment.start_local(
            dev_server_existing_path=binary("temporal"), dev_server_extra_args=server_arguments()
        ) as environment,
        worklists(environment.client, queue=queue, count=40) as done,
    ):
        while not done.done():
            async with Worker(
                environment.client,
                task_queue=queue,
                activities=[work],
                max_concurrent_activities=8,
                graceful_shutdown_timeout=timedelta(seconds=30),
            ):
                await asyncio.sleep(0.2)
        await done
    assert ATTEMPTS == [1] * 200
