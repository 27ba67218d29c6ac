"""One loop, from outside: read, watch and operate it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowHandle

from loopwright.contracts import ids
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.evaluations import EvaluationResult
from loopwright.contracts.failures import ContractError, LoopError, UserError
from loopwright.contracts.iterations import (
    MAX_ITERATIONS,
    OPEN_STATUSES,
    IterationResult,
    LoopInput,
    LoopProgress,
    LoopResult,
    LoopStatus,
    RunIterationsRequest,
    SetRequest,
    StopRequest,
)
from loopwright.sdk.arguments import (
    check_changes,
    check_flag,
    check_seconds,
    check_whole_number,
)
from loopwright.sdk.episodes import steer_episode
from loopwright.sdk.records import LoopDescription, LoopSummary, status_of
from loopwright.sdk.server_errors import LoopUnanswered, translated
from loopwright.sdk.updates import execute_update

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Child = TypeVar("Child", IterationResult, EvaluationResult)

QUERY_TIMEOUT = timedelta(seconds=10)
"""How long a worker may take to answer a query."""
MAX_LOOKUPS = 16
"""Workflows read at once."""
PATIENCE_SECONDS = 300
"""How long ``watch`` and ``result`` go on while nothing answers: processes are started again."""


class LoopHandle:
    """One loop of a Temporal server; get it from ``LoopClient``.

    What operates it raises ``LoopUnanswered`` when no worker of the control pool takes the request;
    the message tells whether one that comes later will.
    """

    def __init__(self, client: Client, loop_id: str) -> None:
        self.loop_id = loop_id
        self._client = client
        self._lookups = asyncio.Semaphore(MAX_LOOKUPS)
        self._workflow: WorkflowHandle[Any, LoopResult] = client.get_workflow_handle(
            ids.loop_workflow_id(loop_id), result_type=LoopResult
        )

    async def status(self) -> LoopStatus:
        """Tell whether the loop runs, pauses or stops, or how it ended."""
        return status_of(await self._describe())

    async def progress(self) -> LoopProgress:
        """Read the live state.

        Raises:
            LoopUnanswered: no worker of the control pool answers.
        """
        with translated(self.loop_id):
            progress: LoopProgress = await self._workflow.query(
                "progress", result_type=LoopProgress, rpc_timeout=QUERY_TIMEOUT
            )
        return progress

    async def watch(self, *, every_seconds: float = 0.5) -> AsyncIterator[LoopProgress]:
        """Give the live state each time it changes, until the loop has closed.

        Raises:
            LoopUnanswered: nothing has answered for five minutes.
        """
        check_seconds("every_seconds", every_seconds)
        last: LoopProgress | None = None
        while True:
            status = await self._patiently(self.status)
            progress = await self._patiently(self.progress)
            if progress != last:
                last = progress
                yield progress
            if status not in OPEN_STATUSES:
                return
            await asyncio.sleep(every_seconds)

    async def iterations(self) -> tuple[IterationResult, ...]:
        """Gather the results of all finished iterations that the server still has."""
        recent = (await self._patiently(self.progress)).results
        first = recent[0].index if recent else 1
        older = await asyncio.gather(*(self._iteration(index) for index in range(1, first)))
        return (*(row for row in older if row is not None), *recent)

    async def evaluations(self) -> tuple[EvaluationResult, ...]:
        """Gather the evaluations between iterations that the server still has."""
        recent = (await self._patiently(self.progress)).evaluations
        every = (await self.config()).evaluation.every
        older = range(every, recent[0].iteration, every) if recent else ()
        found = await asyncio.gather(*(self._evaluation(index) for index in older))
        return (*(each for each in found if each is not None), *recent)

    async def result(self) -> LoopResult:
        """Wait for the end, however long it takes.

        Raises:
            LoopUnanswered: nothing has answered for five minutes.
            LoopError: the loop failed or was cancelled.
        """
        while True:
            try:
                return await self._result()
            except LoopUnanswered as error:
                # The wait was long before it broke; what counts is the silence from here on.
                logger.warning("%s; asking again", error)
                await self._patiently(self.status)
                await asyncio.sleep(1)

    async def pause(self) -> None:
        """Let the running iteration finish, then wait for ``resume``."""
        await self._update("pause")

    async def resume(self) -> None:
        """Go on after a pause."""
        await self._update("resume")

    async def stop(self, *, now: bool = False) -> None:
        """End the loop after the running iteration, or ``now``."""
        check_flag("now", now)
        await self._update("stop", StopRequest(now=now))

    async def run_iterations(self, num_iterations: int) -> int:
        """Ask for more iterations; gives the number the loop will then have done."""
        check_whole_number("num_iterations", num_iterations, most=MAX_ITERATIONS)
        request = RunIterationsRequest(num_iterations=num_iterations)
        total: int = await self._update("run_iterations", request)
        return total

    async def set(self, changes: Mapping[str, Any]) -> LoopConfig:
        """Change keys of the configuration, and give it as it stands then.

        What starts later follows it; what runs is left as it is.

        Args:
            changes: new values by key: ``{"train.learning_rate": 1e-4}``.

        Raises:
            UserError: the loop refuses; nothing is changed.
        """
        check_changes(changes)
        found = await self._update("set", SetRequest(changes=dict(changes)))
        return LoopConfig.model_validate(found)

    async def cancel_episode(self, episode: str) -> None:
        """End an episode under way without a reward; no other takes its place in its group.

        Args:
            episode: its workflow id, as the Web UI shows it.

        Raises:
            UserError: it is no episode of this loop, or is not under way.
        """
        await steer_episode(self._client, self.loop_id, episode, "cancel_episode")

    async def requeue_episode(self, episode: str) -> None:
        """Take an episode from its worker and queue it: it goes on from its last committed turn.

        One that is being graded ends as it would.

        Args:
            episode: its workflow id, as the Web UI shows it.

        Raises:
            UserError: it is no episode of this loop, or is not under way.
        """
        await steer_episode(self._client, self.loop_id, episode, "requeue_episode")

    async def config(self) -> LoopConfig:
        """Read the configuration as it stands; where no worker answers, as the loop was started.

        Raises:
            ContractError: another version of this package started it.
        """
        try:
            with translated(self.loop_id):
                config: LoopConfig = await self._workflow.query(
                    "config", result_type=LoopConfig, rpc_timeout=QUERY_TIMEOUT
                )
        except UserError:
            raise
        except LoopError:
            return await self._first_config()
        return config

    async def _first_config(self) -> LoopConfig:
        """Read the configuration the loop was started with.

        Raises:
            ContractError: another version of this package started it.
        """
        with translated(self.loop_id):
            events = self._workflow.fetch_history_events(page_size=1)
            event = await anext(aiter(events))
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        try:
            (loop,) = await self._client.data_converter.decode(payloads, [LoopInput])
        except (ValidationError, RuntimeError) as error:
            raise ContractError(
                f"loop {self.loop_id} was started by another version of loopwright, whose "
                f"configuration this one cannot read; ask that version"
            ) from error
        config: LoopConfig = loop.config
        return config

    async def describe(self) -> LoopDescription:
        """Gather status, configuration, progress and, when it failed, the reason."""
        summary = LoopSummary.of(await self._describe())
        is_well = summary.status in (*OPEN_STATUSES, "completed", "stopped")
        return LoopDescription(
            **summary.model_dump(),
            config=await self.config(),
            progress=await self._progress_or_none(),
            failure=None if is_well else await self._failure(),
        )

    async def _describe(self) -> WorkflowExecutionDescription:
        with translated(self.loop_id):
            return await self._workflow.describe(rpc_timeout=QUERY_TIMEOUT)

    async def _result(self) -> LoopResult:
        with translated(self.loop_id):
            return await self._workflow.result()

    async def _iteration(self, index: int) -> IterationResult | None:
        """Read the result of one iteration from its own workflow; None when it is gone."""
        workflow_id = ids.iteration_path(ids.loop_workflow_id(self.loop_id), index)
        return await self._result_of_child(workflow_id, IterationResult)

    async def _evaluation(self, num_iterations: int) -> EvaluationResult | None:
        """Read the evaluation after so many iterations; None when it is gone."""
        name = ids.evaluation_name(num_iterations)
        workflow_id = ids.evaluation_path(ids.loop_workflow_id(self.loop_id), name)
        return await self._result_of_child(workflow_id, EvaluationResult)

    async def _result_of_child(self, workflow_id: str, kind: type[Child]) -> Child | None:
        handle: WorkflowHandle[Any, Child] = self._client.get_workflow_handle(
            workflow_id, result_type=kind
        )
        try:
            async with self._lookups:
                with translated(workflow_id):
                    return await handle.result()
        except LoopError:
            return None

    async def _progress_or_none(self) -> LoopProgress | None:
        try:
            return await self.progress()
        except LoopUnanswered:
            return None

    async def _failure(self) -> str | None:
        try:
            await self._result()
        except LoopError as error:
            return str(error)
        return None

    async def _update(self, name: str, *request: BaseModel) -> Any:
        """Execute an update, and give up when no worker takes it."""
        with translated(self.loop_id):
            await self._workflow.describe(rpc_timeout=QUERY_TIMEOUT)
            return await execute_update(self._client, self._workflow, name, *request)

    async def _patiently(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask again while nothing answers, for ``PATIENCE_SECONDS``."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return await ask()
            except LoopUnanswered as error:
                if time.monotonic() > give_up_at:
                    raise
                logger.warning("%s; asking again", error)
                await asyncio.sleep(1)
