"""What episodes survive: failures within their budgets, lost attempts within their bound."""

import asyncio
import dataclasses
import uuid
from datetime import timedelta

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Worker

from loopwright.activities.failures import FailureInterceptor
from loopwright.contracts.failures import ArtifactDamaged, EngineUnavailable, StoreError
from loopwright.workflows.options import RETRY
from tests.fakes import FakeActivities
from tests.workflows.inputs import episode_input, run_episode


async def test_outage_of_hosts_costs_an_episode_nothing_but_time(
    client: Client, fakes: FakeActivities
) -> None:
    away = [EngineUnavailable("away") for _ in range(4)]
    full = [StoreError("full") for _ in range(4)]
    fakes.failures["episode.take_turns"] = [*away, *full]
    result = await run_episode(client, episode_input())
    assert (result.status, result.reward) == ("graded", 0.0)
    assert fakes.counts()["episode.take_turns"] == 9


async def test_damaged_artifact_is_looked_for_three_times_whatever_else_failed(
    client: Client, fakes: FakeActivities
) -> None:
    others = [EngineUnavailable("away") for _ in range(5)]
    damage = [ArtifactDamaged("gone") for _ in range(3)]
    fakes.failures["episode.take_turns"] = [damage[0], *others, *damage[1:]]
    result = await run_episode(client, episode_input())
    assert result.failure is not None
    assert (result.failure.owner, result.failure.type) == ("platform", "ArtifactDamaged")
    assert (result.reward, fakes.counts()["episode.take_turns"]) == (None, 8)


async def test_error_that_nobody_foresaw_has_few_attempts_and_no_reward(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.grade_episode"] = [
        ApplicationError("/ 0", type="ZeroDivisionError") for _ in range(9)
    ]
    result = await run_episode(client, episode_input())
    assert result.failure is not None
    assert (result.failure.owner, result.failure.type) == ("platform", "ZeroDivisionError")
    assert (result.reward, fakes.counts()["episode.grade_episode"]) == (None, 3)


async def test_failure_is_named_by_its_own_type_not_by_what_it_was_raised_from(
    client: Client, fakes: FakeActivities
) -> None:
    error = ArtifactDamaged("record 3 is gone")
    error.__cause__ = KeyError("3")
    fakes.failures["episode.take_turns"] = [error] * 3
    result = await run_episode(client, episode_input())
    assert result.failure is not None
    assert result.failure.type == "ArtifactDamaged"
    assert result.failure.message == "ArtifactDamaged: record 3 is gone"


_MOMENT = timedelta(seconds=0.01)
IMPATIENT = dataclasses.replace(RETRY, initial_interval=_MOMENT, maximum_interval=_MOMENT)
"""The retries that all activities have, without their pauses."""

BEGUN: list[int] = []
"""The attempts that a body was given."""


@activity.defn
async def kill_the_worker() -> None:
    """Never answer, as one whose worker was killed."""
    BEGUN.append(activity.info().attempt)
    await asyncio.sleep(3600)


@workflow.defn(sandboxed=False)
class Deadly:
    """Tries it as all activities are tried, with little time for each attempt."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            kill_the_worker,
            start_to_close_timeout=timedelta(seconds=0.05),
            retry_policy=IMPATIENT,
        )


async def test_work_that_kills_its_workers_is_poison_after_twenty(client: Client) -> None:
    queue = str(uuid.uuid4())
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[Deadly],
        activities=[kill_the_worker],
        interceptors=[FailureInterceptor()],
    )
    async with worker:
        with pytest.raises(WorkflowFailureError) as caught:
            await client.execute_workflow(Deadly.run, id=queue, task_queue=queue)
    assert isinstance(caught.value.cause, ActivityError)
    failure = caught.value.cause.cause
    assert isinstance(failure, ApplicationError)
    assert failure.type == "Poisoned"
    assert "20 attempts at kill_the_worker ended without an answer" in str(failure)
    assert list(range(1, 21)) == BEGUN
