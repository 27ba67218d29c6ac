"""One schedule, from outside: read and operate it."""

import asyncio
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    ScheduleActionStartWorkflow,
    ScheduleBackfill,
    ScheduleOverlapPolicy,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.client import ScheduleDescription as TemporalDescription
from temporalio.service import RPCError

from loopwright.contracts import ids
from loopwright.contracts.failures import ContractError, UserError
from loopwright.contracts.schedules import Overlap, ScheduledWorkInput, ScheduledWorkResult
from loopwright.sdk.arguments import check_choice, check_text, check_time
from loopwright.sdk.loop_handle import QUERY_TIMEOUT
from loopwright.sdk.schedule_errors import UnknownSchedule, translated_schedule
from loopwright.sdk.schedule_records import Firing, ScheduleDescription
from loopwright.sdk.server_errors import message_of

OVERLAPS: dict[Overlap, ScheduleOverlapPolicy] = {
    "skip": ScheduleOverlapPolicy.SKIP,
    "buffer_one": ScheduleOverlapPolicy.BUFFER_ONE,
    "buffer_all": ScheduleOverlapPolicy.BUFFER_ALL,
}

_FIRST_YEAR = 1970
"""From which intervals count."""


class ScheduleHandle:
    """One schedule of a Temporal server; get it from ``LoopClient.schedules``."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._schedule = client.get_schedule_handle(name)

    async def pause(self, *, note: str = "paused") -> None:
        """Let no more times count, until ``resume``; what runs goes on."""
        check_text("note", note)
        with translated_schedule(self.name):
            await self._schedule.pause(note=note, rpc_timeout=QUERY_TIMEOUT)

    async def resume(self, *, note: str = "resumed") -> None:
        """Let times count again; those of the pause are not made up for."""
        check_text("note", note)
        with translated_schedule(self.name):
            await self._schedule.unpause(note=note, rpc_timeout=QUERY_TIMEOUT)

    async def trigger(self) -> None:
        """Let it fire now, as its overlap policy allows, also while it is paused."""
        with translated_schedule(self.name):
            await self._schedule.trigger(rpc_timeout=QUERY_TIMEOUT)

    async def backfill(
        self, start: datetime, end: datetime, *, overlap: Overlap = "buffer_all"
    ) -> None:
        """Let it fire now for each of its times from ``start`` to ``end``, both included.

        Args:
            start: an aware time.
            end: an aware time, not before ``start`` and not to come.
            overlap: in place of the schedule's own policy, which would skip all but the first.
        """
        _check_range(start, end)
        check_choice("overlap", overlap, OVERLAPS)
        # The server has both counted and left out a time that is the start itself.
        start -= timedelta(milliseconds=1)
        with translated_schedule(self.name):
            await self._schedule.backfill(
                ScheduleBackfill(start, end, OVERLAPS[overlap]), rpc_timeout=QUERY_TIMEOUT
            )

    async def delete(self) -> None:
        """Delete it; firings that have not ended go on."""
        with translated_schedule(self.name):
            await self._schedule.delete(rpc_timeout=QUERY_TIMEOUT)

    async def describe(self) -> ScheduleDescription:
        """Tell what it does and what became of its times, with the results of its firings."""
        found = await self.summarise()
        firings = await asyncio.gather(*map(self._with_end, found.firings))
        return found.model_copy(update={"firings": tuple(firings)})

    async def summarise(self) -> ScheduleDescription:
        """Tell the same without the results of its firings."""
        with translated_schedule(self.name):
            found = await self._schedule.describe(rpc_timeout=QUERY_TIMEOUT)
        return ScheduleDescription.of(found, await self._firing_input(found))

    async def _firing_input(self, found: TemporalDescription) -> ScheduledWorkInput:
        action = found.schedule.action
        if not isinstance(action, ScheduleActionStartWorkflow) or (
            action.workflow != ids.SCHEDULED_WORK
        ):
            raise UnknownSchedule(f"schedule {self.name} is not one of loopwright's")
        payloads = [each for each in action.args if isinstance(each, Payload)]
        try:
            (firing,) = await self._client.data_converter.decode(payloads, [ScheduledWorkInput])
        except (ValidationError, RuntimeError, ValueError) as error:
            raise ContractError(
                f"schedule {self.name} was made by another version of loopwright, whose work this "
                f"one cannot read; ask that version"
            ) from error
        work: ScheduledWorkInput = firing
        return work

    async def _with_end(self, firing: Firing) -> Firing:
        """Add what a firing that has ended came to, where the server still knows."""
        if firing.outcome == "running":
            return firing
        workflow: WorkflowHandle[object, ScheduledWorkResult] = self._client.get_workflow_handle(
            firing.workflow_id, result_type=ScheduledWorkResult
        )
        try:
            result = await workflow.result(rpc_timeout=QUERY_TIMEOUT)
        except WorkflowFailureError as error:
            return firing.model_copy(update={"failure": message_of(error.cause)})
        except (RPCError, ValidationError, RuntimeError):
            return firing
        return firing.model_copy(update={"result": result})


def _check_range(start: object, end: object) -> None:
    first, last = check_time("start", start), check_time("end", end)
    if first.year < _FIRST_YEAR:
        raise UserError(f"start: expected a time since {_FIRST_YEAR}, got {first}")
    if first > last:
        raise UserError(f"end: expected a time not before the start, {first}; got {last}")
    if last > datetime.now(UTC):
        raise UserError(f"end: expected a time that has passed, got {last}")
