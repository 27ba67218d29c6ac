"""A running platform with scripted engines, as a benchmark drives it."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from benchmarks.scripted.environment import LEDGER, LedgerOptions
from benchmarks.scripted.platform import ScriptedOptions, engine_urls, scripted_stack
from benchmarks.scripted.server import Script, Tally
from loopwright.adapters.s3_store import S3ObjectStore
from loopwright.contracts import queues
from loopwright.contracts.configs import (
    EngineConfig,
    EnvironmentConfig,
    EpisodeConfig,
    EvaluationConfig,
    IterationConfig,
    LoopConfig,
)
from loopwright.embedded.stack import StackInfo, stack_environment
from loopwright.sdk import LoopClient
from loopwright.sdk.connection import connect
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store


@dataclass(frozen=True, slots=True)
class Running:
    """The platform's clients, and what its engines are told."""

    info: StackInfo
    client: Client
    session: aiohttp.ClientSession
    options: ScriptedOptions

    @property
    def loops(self) -> LoopClient:
        """The loops of the platform."""
        return LoopClient(self.client)

    async def script(self, script: Script) -> None:
        """Change what every engine does."""
        for url in self._urls():
            body = script.model_dump()
            async with self.session.post(f"{url}/script", json=body, raise_for_status=True):
                pass

    async def num_calls(self) -> int:
        """Count the completions that all engines were asked for."""
        found = 0
        for url in self._urls():
            async with self.session.get(f"{url}/script", raise_for_status=True) as response:
                found += Tally.model_validate_json(await response.read()).num_calls
        return found

    async def num_episodes(self, status: str = "Running") -> int:
        """Count the episodes of a status."""
        query = f"WorkflowType = 'Episode' AND ExecutionStatus = '{status}'"
        return (await self.client.count_workflows(query)).count

    async def backlog(self) -> int:
        """Count the activities of episodes that wait for a worker."""
        answer = await self.client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=self.client.namespace,
                task_queue=TaskQueue(name=queues.EPISODE),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
                report_stats=True,
            )
        )
        return answer.stats.approximate_backlog_count

    def store(self) -> S3ObjectStore:
        """Open the object store."""
        return open_store(Settings.from_environment(stack_environment(self.info)))

    def processes(self) -> dict[str, psutil.Process]:
        """Give the process of each child by its name."""
        found = self.info.children.items()
        return {name: psutil.Process(child.pid) for name, child in found if child.pid}

    def _urls(self) -> list[str]:
        return list(engine_urls(self.info.engine_url, self.options).values())


@asynccontextmanager
async def running(options: ScriptedOptions) -> AsyncIterator[Running]:
    """Start a platform in a folder of its own, and stop it and remove the folder at the end."""
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        stack = scripted_stack(Path(folder) / "state", options)
        try:
            info = await asyncio.to_thread(stack.ensure_running)
            client = await connect(info.temporal_address, "default")
            async with aiohttp.ClientSession() as session:
                yield Running(info, client, session, options)
        finally:
            await asyncio.to_thread(stack.stop)


def ledger_config(options: LedgerOptions, *, engine: str = "main") -> LoopConfig:
    """Make a loop over the ledger environment that neither trains for long nor evaluates."""
    return LoopConfig(
        environments=(EnvironmentConfig(id=LEDGER, options=options.model_dump()),),
        engines=(EngineConfig(name=engine),),
        iteration=IterationConfig(num_tasks=16, group_size=8),
        episode=EpisodeConfig(max_turns=options.num_turns),
        evaluation=EvaluationConfig(num_tasks=2, samples=1, at_start=False, at_end=False),
        num_iterations=1,
    )
