"""Engines that no worker serves, with fake activities on the real server."""

import asyncio
import gc
import sys
import uuid

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from loopwright.contracts import queues
from loopwright.contracts.configs import EngineConfig
from loopwright.contracts.iterations import StopRequest
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.workflows.engine_lease import EngineLease
from loopwright.workflows.options import Patience
from tests.fakes import FakeActivities, artifact
from tests.workflows.conftest import small_config, start_loop
from tests.workflows.test_loop import progress

CHECKPOINT = CheckpointRef(policy=PolicyVersion(policy_id="x", version=0), manifest=artifact("m"))
QUICK = Patience(first_seconds=0.1, longest_seconds=0.2, total_seconds=0.5)


@workflow.defn(sandboxed=False)
class LeaseWorkflow:
    """Waits for an engine, at most so many tries."""

    @workflow.run
    async def run(self, engine: str, is_known: bool, max_tries: int) -> list[str]:
        told: list[str] = []
        lease = EngineLease(engine, "embedded", is_known=is_known, patience=QUICK)
        await lease.acquire(
            CHECKPOINT, on_wait=told.append, is_given_up=lambda: len(told) >= max_tries
        )
        return [*told, "held"] if lease.is_held else told


@workflow.defn(sandboxed=False)
class HoldWorkflow:
    """Holds an engine until it is let go."""

    def __init__(self) -> None:
        self._lets_go = False

    @workflow.run
    async def run(self) -> None:
        async with EngineLease("main", "embedded", is_known=True) as lease:
            await lease.acquire(CHECKPOINT, on_wait=lambda _: None, is_given_up=lambda: False)
            await workflow.wait_condition(lambda: self._lets_go)

    @workflow.signal
    def let_go(self) -> None:
        self._lets_go = True


async def wait_for_engine(
    client: Client, engine: str, *, is_known: bool, max_tries: int = 99
) -> list[str]:
    async with Worker(client, task_queue="leases", workflows=[LeaseWorkflow]):
        told: list[str] = await client.execute_workflow(
            LeaseWorkflow.run,
            args=[engine, is_known, max_tries],
            id=f"lease-{uuid.uuid4()}",
            task_queue="leases",
        )
    return told


async def test_engine_that_never_had_a_worker_is_given_up_with_advice(client: Client) -> None:
    with pytest.raises(WorkflowFailureError) as caught:
        await wait_for_engine(client, "fats", is_known=False)
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "EngineUnavailable"
    assert "no worker serves engine 'fats', and none has come in 0.5 seconds" in cause.message
    assert "LOOPWRIGHT_ENGINE=fats" in cause.message


async def test_engine_that_has_answered_before_is_waited_for_without_end(client: Client) -> None:
    told = await wait_for_engine(client, "away", is_known=True, max_tries=9)
    assert told == ["no worker serves engine away"] * 9


async def test_worker_that_comes_late_is_taken(client: Client, fakes: FakeActivities) -> None:
    waiting = asyncio.create_task(wait_for_engine(client, "late", is_known=True))
    await asyncio.sleep(1)
    queue = queues.engine_queue("late")
    async with Worker(client, task_queue=queue, activities=fakes.all()):
        told = await waiting
    assert told[-1] == "held"
    assert set(told[:-1]) == {"no worker serves engine late"}


async def test_loop_shows_that_nobody_serves_its_engine_and_can_be_stopped(client: Client) -> None:
    handle = await start_loop(client, small_config(engines=(EngineConfig(name="fats"),)))
    while not (state := await progress(handle)).detail:
        await asyncio.sleep(0.02)
    assert (state.phase, state.detail) == ("waiting_for_engine", "no worker serves engine fats")
    await handle.execute_update("stop", StopRequest(now=True))
    assert (await handle.result()).outcome == "stopped"


async def test_workflow_that_its_worker_forgets_keeps_the_engine_until_its_own_end(
    client: Client, fakes: FakeActivities, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: complaints.append(repr(what.exc_value)))
    forgetful = Worker(
        client,
        task_queue="leases",
        workflows=[HoldWorkflow],
        max_cached_workflows=0,
        disable_safe_workflow_eviction=True,
    )
    async with forgetful:
        handle = await client.start_workflow(
            HoldWorkflow.run, id=f"lease-{uuid.uuid4()}", task_queue="leases"
        )
        while not fakes.counts()["engine.load_policy"]:
            await asyncio.sleep(0.02)
        gc.collect()
        await asyncio.sleep(0)  # what the collection would have set off
        assert fakes.counts()["engine.release_lease"] == 0
        await handle.signal(HoldWorkflow.let_go)
        await handle.result()
    gc.collect()
    assert fakes.counts()["engine.release_lease"] == 1
    assert complaints == []
