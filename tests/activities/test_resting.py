"""Steps that are cancelled by a workflow that waits for them, by one that does not, by a worker."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from temporalio import activity, workflow
from temporalio.activity import ActivityCancellationDetails
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment
from temporalio.worker import Worker
from temporalio.workflow import ActivityCancellationType

from loopwright.activities.episode.resting import Rest


class Walk:
    """Takes steps, each of which ends when the test lets it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.num_ended = 0
        self.was_cancelled = asyncio.Event()
        self.was_broken_off = asyncio.Event()

    @activity.defn(name="walk")
    async def walk(self) -> int:
        """Walk until it is time to rest, and count the steps."""
        rest, noting = Rest(), asyncio.create_task(self._note_cancellation())
        while not rest.is_due():
            await rest.after(self._step())
        noting.cancel()
        return self.num_ended

    async def _note_cancellation(self) -> None:
        await activity.wait_for_cancelled()
        self.was_cancelled.set()

    async def _step(self) -> None:
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_broken_off.set()
            raise
        self.num_ended += 1


@workflow.defn(sandboxed=False)
class Walker:
    """Walks until it is parked."""

    def __init__(self) -> None:
        self._is_parking = False

    @workflow.run
    async def run(self) -> int:
        walk: workflow.ActivityHandle[int] = workflow.start_activity(
            "walk",
            result_type=int,
            start_to_close_timeout=timedelta(minutes=5),
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        try:
            await workflow.wait_condition(lambda: self._is_parking)
        except asyncio.CancelledError:
            walk.cancel()
            await asyncio.sleep(0)
            raise
        walk.cancel()
        return await walk

    @workflow.signal
    def park(self) -> None:
        """End after the step."""
        self._is_parking = True


Handle = WorkflowHandle[Walker, int]


@asynccontextmanager
async def begun(client: Client, walk: Walk, *, grace_seconds: float = 0) -> AsyncIterator[Handle]:
    """Give a workflow whose walk is in its first step, and its worker's life."""
    queue = str(uuid.uuid4())
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[Walker],
        activities=[walk.walk],
        graceful_shutdown_timeout=timedelta(seconds=grace_seconds),
    )
    async with worker:
        handle = await client.start_workflow(Walker.run, id=queue, task_queue=queue)
        await walk.begun.wait()
        yield handle


async def test_step_ends_before_a_parked_activity_does(temporal: WorkflowEnvironment) -> None:
    walk = Walk()
    async with begun(temporal.client, walk) as handle:
        await handle.signal(Walker.park)
        await walk.was_cancelled.wait()
        walk.may_end.set()
        assert await handle.result() == 1
    assert not walk.was_broken_off.is_set()


async def test_step_is_broken_off_where_nobody_waits_for_it(temporal: WorkflowEnvironment) -> None:
    walk = Walk()
    async with begun(temporal.client, walk) as handle:
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        await walk.was_broken_off.wait()
    assert walk.num_ended == 0


async def test_step_is_broken_off_when_the_grace_of_a_stopping_worker_is_over(
    temporal: WorkflowEnvironment,
) -> None:
    walk = Walk()
    async with begun(temporal.client, walk, grace_seconds=0.2):
        pass
    assert walk.was_broken_off.is_set()


@pytest.mark.parametrize("reason", ["timed_out", "not_found", "reset", "paused"])
async def test_step_is_broken_off_where_the_attempt_does_not_count_any_more(reason: str) -> None:
    walk, environment = Walk(), ActivityEnvironment()
    walking = asyncio.create_task(environment.run(walk.walk))
    await walk.begun.wait()
    environment.cancel(ActivityCancellationDetails(**{reason: True}))
    with pytest.raises(asyncio.CancelledError):
        await walking
    assert walk.was_broken_off.is_set()


async def test_parked_step_does_not_hold_up_a_stopping_worker(
    temporal: WorkflowEnvironment,
) -> None:
    walk = Walk()
    async with begun(temporal.client, walk, grace_seconds=1) as handle:
        await handle.signal(Walker.park)
        await walk.was_cancelled.wait()
    assert walk.was_broken_off.is_set()
