"""Start, find and list loops on a Temporal server."""

import asyncio
import difflib
import re
import secrets
from datetime import UTC, datetime

from temporalio.client import Client
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import GrpcCompression

from loopwright.contracts import ids, queues
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.failures import UserError
from loopwright.contracts.iterations import LoopInput
from loopwright.sdk.loop_handle import LoopHandle
from loopwright.sdk.plugin import plugin
from loopwright.sdk.records import LoopSummary
from loopwright.sdk.server_errors import UnknownLoop, translated

CONNECT_TIMEOUT_SECONDS = 5

_LOOP_NAME = SearchAttributeKey.for_keyword("LoopName")
_LOOP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ADDRESS = re.compile(r"[^\s/:]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}")


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
            UserError: nothing answers there.
        """
        if not _ADDRESS.fullmatch(address):
            raise UserError(f"Temporal's address: expected HOST:PORT, got {address!r}")
        connecting = Client.connect(
            address,
            namespace=namespace,
            plugins=[plugin()],
            grpc_compression=GrpcCompression.NONE,
        )
        try:
            return cls(await asyncio.wait_for(connecting, CONNECT_TIMEOUT_SECONDS))
        except (RuntimeError, TimeoutError, ValueError) as error:
            raise UserError(
                f"cannot reach Temporal at {address}: {_reason(error)}; "
                f"start it (`loopwright up`) or set LOOPWRIGHT_TEMPORAL_ADDRESS"
            ) from error

    async def start(self, config: LoopConfig, *, loop_id: str | None = None) -> LoopHandle:
        """Start a loop; the id of one that has ended may be used again.

        Args:
            config: what the loop is to do.
            loop_id: its name; None makes one from the time.

        Raises:
            LoopRunsAlready: a loop of this id is running.
            UserError: the id is not one.
        """
        loop_id = _checked(loop_id) if loop_id is not None else _new_loop_id()
        try:
            with translated(loop_id):
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
        handle = LoopHandle(self._client, _checked(loop_id))
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
        query = f"WorkflowType = '{ids.LOOP}' AND ExecutionStatus != 'ContinuedAsNew'"
        newest: dict[str, LoopSummary] = {}
        with translated("*"):
            async for execution in self._client.list_workflows(query):
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
            search_attributes=TypedSearchAttributes([SearchAttributePair(_LOOP_NAME, loop_id)]),
            static_summary=f"loop {loop_id}: {config.policy.model}, "
            f"{', '.join(environment.id for environment in config.environments)}",
        )


def _checked(loop_id: str) -> str:
    if not _LOOP_ID.fullmatch(loop_id):
        raise UserError(
            f"loop id: expected up to 64 letters, digits, '.', '_' or '-', "
            f"the first a letter or digit; got {loop_id!r}"
        )
    return loop_id


def _new_loop_id() -> str:
    """Make an id that reads and sorts by time: ``loop-20261201-1412-ab3``."""
    return f"loop-{datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(2)[:3]}"


def _reason(error: Exception) -> str:
    """Find the words in what the SDK's core says of a failed connection."""
    found = re.search(r'message: "([^"]+)"', str(error))
    return found[1].lower() if found else str(error) or "no answer"
