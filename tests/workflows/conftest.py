"""Workers whose activities are fakes."""

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from loopwright.activities.control.ask_loop import AskLoop
from loopwright.activities.control.await_loop import AwaitLoop
from loopwright.activities.failures import FailureInterceptor
from loopwright.contracts import ids, queues
from loopwright.contracts.configs import EvaluationConfig, IterationConfig, LoopConfig, TrainConfig
from loopwright.contracts.iterations import LoopInput
from loopwright.contracts.queues import Pool
from loopwright.core import loop_bounds
from loopwright.workers.pools import POOLS
from tests.fakes import FakeActivities


def resolve(target: str) -> Any:
    """Import what ``module:name`` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def workflows_of(*pools: Pool) -> list[Any]:
    """Import the workflows that the workers of pools run."""
    return [resolve(target) for pool in pools for target in POOLS[pool].workflows]


WORKFLOWS = workflows_of(*POOLS)
WORKFLOWS_BY_QUEUE = {
    queues.CONTROL: workflows_of(Pool.CONTROL),
    queues.WAITS: [],
    queues.EPISODE: workflows_of(Pool.EPISODE),
    queues.TRAINER: [],
    queues.engine_queue("main"): [],
}


def asking(client: Client) -> list[Callable[..., Any]]:
    """Give the activities that ask loops: they need no fakes, for the server is real."""
    return [AskLoop(client).ask_loop, AwaitLoop(client).await_loop]


@pytest.fixture
def is_sandboxed() -> bool:
    return True


@pytest.fixture
def fakes() -> FakeActivities:
    return FakeActivities()


@pytest.fixture
async def client(temporal: WorkflowEnvironment, fakes: FakeActivities) -> AsyncIterator[Client]:
    """Give a client whose server has a worker with fakes on every queue."""
    async with workers(temporal.client, fakes):
        yield temporal.client


@asynccontextmanager
async def workers(client: Client, fakes: FakeActivities) -> AsyncIterator[None]:
    """Run a worker with fakes on every queue."""
    async with AsyncExitStack() as stack:
        for queue, workflows in WORKFLOWS_BY_QUEUE.items():
            worker = Worker(
                client,
                task_queue=queue,
                workflows=workflows,
                activities=[*fakes.all(), *asking(client)],
                interceptors=[FailureInterceptor()],
            )
            await stack.enter_async_context(worker)
        yield


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loops continue as new after three iterations, and carry two evaluations."""
    monkeypatch.setattr(loop_bounds, "ITERATIONS_PER_RUN", 3)
    monkeypatch.setattr(loop_bounds, "KEPT_RESULTS", 3)
    monkeypatch.setattr(loop_bounds, "KEPT_EVALUATIONS", 2)


def small_config(**changes: Any) -> LoopConfig:
    """Make a loop of two iterations of three groups of four, without evaluations."""
    base = LoopConfig(
        iteration=IterationConfig(num_tasks=3, group_size=4),
        evaluation=EvaluationConfig(num_tasks=2, samples=2, at_start=False, at_end=False),
        train=TrainConfig(num_minibatches=1),
        num_iterations=2,
    )
    return base.model_copy(update=changes)


async def start_loop(
    client: Client, config: LoopConfig, loop_id: str | None = None
) -> WorkflowHandle[Any, Any]:
    """Start a loop under a name of its own."""
    loop_id = loop_id or f"l{uuid.uuid4().hex[:8]}"
    from loopwright.contracts.iterations import LoopResult

    return await client.start_workflow(
        ids.LOOP,
        LoopInput(loop_id=loop_id, config=config),
        id=ids.loop_workflow_id(loop_id),
        task_queue=queues.CONTROL,
        result_type=LoopResult,
    )
