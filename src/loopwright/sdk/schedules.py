"""Recurring iterations and evaluations, as Temporal Schedules."""

import asyncio
import difflib
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    SchedulePolicy,
    ScheduleState,
)
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from loopwright.contracts import ids, queues
from loopwright.contracts.failures import ContractError, UserError
from loopwright.contracts.iterations import OPEN_STATUSES
from loopwright.contracts.schedules import (
    ScheduleConfig,
    ScheduledEvaluation,
    ScheduledWorkInput,
    Work,
)
from loopwright.contracts.search_attributes import LOOP_NAME
from loopwright.sdk.arguments import check_config, check_flag, check_id, check_loop_id, check_text
from loopwright.sdk.loop_handle import MAX_LOOKUPS, QUERY_TIMEOUT, LoopHandle
from loopwright.sdk.schedule_errors import UnknownSchedule, translated_schedule
from loopwright.sdk.schedule_handle import OVERLAPS, ScheduleHandle
from loopwright.sdk.schedule_records import ScheduleDescription
from loopwright.sdk.schedule_specs import spec_of

logger = logging.getLogger(__name__)


class Schedules:
    """The schedules of one Temporal namespace; get them from ``LoopClient.schedules``.

    Example:
        ``await client.schedules.create("nightly", ScheduleConfig(loop_id="first", times=...))``
    """

    def __init__(
        self, client: Client, *, find_loop: Callable[[str], Awaitable[LoopHandle]]
    ) -> None:
        self._client = client
        self._find_loop = find_loop

    async def create(
        self, name: str, config: ScheduleConfig, *, is_paused: bool = False, note: str | None = None
    ) -> ScheduleHandle:
        """Make a schedule for a loop that has not ended.

        Args:
            name: its name.
            config: what it does, and when.
            is_paused: whether it waits for ``resume``.
            note: what people are to know of it.

        Raises:
            ScheduleExists: there is one of this name.
            UserError: the name is none, or there is no such loop or time zone.
        """
        check_id("name of the schedule", name)
        check_config(config, ScheduleConfig)
        check_flag("is_paused", is_paused)
        if note is not None:
            check_text("note", note)
        spec = spec_of(config.times)
        await self._check_loop(config.loop_id)
        with translated_schedule(name):
            await self._client.create_schedule(
                name,
                Schedule(
                    action=_action(name, config),
                    spec=spec,
                    policy=_policy(config),
                    state=ScheduleState(paused=is_paused, note=note),
                ),
                search_attributes=_search_attributes(config.loop_id),
                rpc_timeout=QUERY_TIMEOUT,
            )
        return ScheduleHandle(self._client, name)

    async def schedule(self, name: str) -> ScheduleHandle:
        """Find a schedule.

        Raises:
            UnknownSchedule: there is none of this name; the message names near ones.
        """
        check_id("name of the schedule", name)
        handle = ScheduleHandle(self._client, name)
        try:
            await handle.summarise()
        except UnknownSchedule as error:
            known = [each.name for each in await self.list_schedules()]
            near = difflib.get_close_matches(name, known, n=3)
            hint = (
                f"did you mean {' or '.join(near)}?" if near else "see `loopwright schedule list`"
            )
            raise UnknownSchedule(f"{error}; {hint}") from error
        return handle

    async def list_schedules(
        self, *, loop_id: str | None = None, has_results: bool = False
    ) -> list[ScheduleDescription]:
        """List schedules by name, of one loop or of all.

        Args:
            loop_id: the loop; None lists those of all.
            has_results: whether to tell the results of their firings, which takes longer.
        """
        if loop_id is not None:
            check_loop_id(loop_id)
        lookups = asyncio.Semaphore(MAX_LOOKUPS)
        names = await self._names(loop_id)
        found = await asyncio.gather(
            *(self._tell(name, lookups, has_results=has_results) for name in names)
        )
        return [each for each in found if each is not None]

    async def _names(self, loop_id: str | None) -> list[str]:
        query = None if loop_id is None else f"{LOOP_NAME.name} = '{loop_id}'"
        with translated_schedule():
            entries = await self._client.list_schedules(query, rpc_timeout=QUERY_TIMEOUT)
            return sorted(
                [
                    entry.id
                    async for entry in entries
                    if entry.raw_entry.info.workflow_type.name == ids.SCHEDULED_WORK
                ]
            )

    async def _tell(
        self, name: str, lookups: asyncio.Semaphore, *, has_results: bool
    ) -> ScheduleDescription | None:
        """Describe a schedule that was listed; None where it is gone or cannot be read."""
        async with lookups:
            try:
                handle = ScheduleHandle(self._client, name)
                return await (handle.describe() if has_results else handle.summarise())
            except UnknownSchedule:
                return None
            except ContractError as error:
                logger.warning("%s", error)
                return None

    async def _check_loop(self, loop_id: str) -> None:
        status = await (await self._find_loop(loop_id)).status()
        if status not in OPEN_STATUSES:
            raise UserError(f"loop {loop_id} has ended ({status}); start it anew instead")


def _action(name: str, config: ScheduleConfig) -> ScheduleActionStartWorkflow:
    return ScheduleActionStartWorkflow(
        ids.SCHEDULED_WORK,
        ScheduledWorkInput(schedule=name, loop_id=config.loop_id, work=config.work),
        id=ids.schedule_path(ids.loop_workflow_id(config.loop_id), name),
        task_queue=queues.CONTROL,
        typed_search_attributes=_search_attributes(config.loop_id),
        static_summary=f"{words_of_work(config.work)} of loop {config.loop_id}, by {name}",
    )


def words_of_work(work: Work) -> str:
    """Say what a schedule asks for: ``2 iterations``."""
    if isinstance(work, ScheduledEvaluation):
        return "evaluation"
    return f"{work.num_iterations} iteration{'' if work.num_iterations == 1 else 's'}"


def _policy(config: ScheduleConfig) -> SchedulePolicy:
    return SchedulePolicy(
        overlap=OVERLAPS[config.overlap],
        catchup_window=timedelta(seconds=config.catch_up_seconds),
        pause_on_failure=config.pauses_on_failure,
    )


def _search_attributes(loop_id: str) -> TypedSearchAttributes:
    return TypedSearchAttributes([SearchAttributePair(LOOP_NAME, loop_id)])
