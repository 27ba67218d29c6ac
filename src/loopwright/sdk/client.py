"""Start, find and list loops on a Temporal server."""

import difflib
import secrets
from datetime import UTC, datetime

from temporalio.client import Client
from temporalio.common import (
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError

from loopwright.contracts import ids, queues
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.failures import UserError
from loopwright.contracts.iterations import LoopInput
from loopwright.contracts.search_attributes import LOOP_NAME
from loopwright.sdk import connection
from loopwright.sdk.arguments import check_config, check_loop_id, check_whole_number
from loopwright.sdk.loop_handle import QUERY_TIMEOUT, LoopHandle
from loopwright.sdk.namespaces import check_search_attributes
from loopwright.sdk.records import LoopSummary
from loopwright.sdk.schedules import Schedules
from loopwright.sdk.server_errors import UnknownLoop, translated


class LoopRunsAlready(UserError):
    """A loop of this id is running."""


class LoopClient:
    """The loops of one Temporal namespace.

    Example:
        ``client = await LoopClient.connect("127.0.0.1:7233")``
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    async def connect(cls, address: str, *, namespace: str = "default") -> "LoopClient":
        """Connect to the Temporal server at ``HOST:PORT``.

        Raises:
            UserError: nothing answers there, or it has no such namespace.
        """
        return cls(await connection.connect(address, namespace))

    @property
    def schedules(self) -> Schedules:
        """Recurring iterations and evaluations of these loops."""
        return Schedules(self._client, find_loop=self.loop)

    async def start(self, config: LoopConfig, *, loop_id: str | None = None) -> LoopHandle:
        """Start a loop; the id of one that has ended may be used again.

        Args:
            config: what the loop is to do.
            loop_id: its name; None makes one from the time.

        Raises:
            LoopRunsAlready: a loop of this id is running.
            UserError: the id is not one, or the namespace lacks what loops need.
        """
        check_config(config)
        loop_id = _new_loop_id() if loop_id is None else loop_id
        check_loop_id(loop_id)
        try:
            with translated(loop_id):
                await check_search_attributes(self._client)
                await self._start(config, loop_id)
        except WorkflowAlreadyStartedError as error:
            raise LoopRunsAlready(
                f"loop {loop_id} is running; `loopwright watch {loop_id}` shows it, "
                f"or choose another id"
            ) from error
        return LoopHandle(self._client, loop_id)

    async def loop(self, loop_id: str) -> LoopHandle:
        """Find a loop, running or ended.

        Raises:
            UserError: there is none of this id; the message names near ones.
        """
        check_loop_id(loop_id)
        handle = LoopHandle(self._client, loop_id)
        try:
            await handle.status()
        except UnknownLoop as error:
            known = [summary.loop_id for summary in await self.list_loops(limit=500)]
            near = difflib.get_close_matches(loop_id, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else "see `loopwright list`"
            raise UnknownLoop(f"{error}; {hint}") from error
        return handle

    async def list_loops(self, *, limit: int = 50) -> list[LoopSummary]:
        """List loops, each once, the last started first."""
        check_whole_number("limit", limit)
        query = f"WorkflowType = '{ids.LOOP}' AND ExecutionStatus != 'ContinuedAsNew'"
        newest: dict[str, LoopSummary] = {}
        with translated():
            found = self._client.list_workflows(query, rpc_timeout=QUERY_TIMEOUT)
            async for execution in found:
                summary = LoopSummary.of(execution)
                known = newest.get(summary.loop_id)
                if known is None or known.started_at < summary.started_at:
                    newest[summary.loop_id] = summary
                if len(newest) >= limit:
                    break
        return sorted(newest.values(), key=lambda summary: summary.started_at, reverse=True)

    async def _start(self, config: LoopConfig, loop_id: str) -> None:
        await self._client.start_workflow(
            ids.LOOP,
            LoopInput(loop_id=loop_id, config=config),
            id=ids.loop_workflow_id(loop_id),
            task_queue=queues.CONTROL,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            search_attributes=TypedSearchAttributes([SearchAttributePair(LOOP_NAME, loop_id)]),
            static_summary=f"loop {loop_id}: {config.policy.model}, "
            f"{', '.join(environment.id for environment in config.environments)}",
            rpc_timeout=QUERY_TIMEOUT,
        )


def _new_loop_id() -> str:
    """Make an id that reads and sorts by time: ``loop-20261201-1412-ab3``."""
    return f"loop-{datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(2)[:3]}"
