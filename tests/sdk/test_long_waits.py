"""What waits for a loop for long bears that the server is away now and then."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from loopwright.contracts.iterations import LoopResult
from loopwright.sdk import LoopHandle, loop_handle

RESULT = LoopResult(
    loop_id="x", outcome="completed", checkpoint=None, num_iterations=0, num_episodes=0, num_lost=0
)


class OftenAway:
    """A server whose answer comes after so many broken connections."""

    def __init__(self, num_breaks: int) -> None:
        self.num_breaks = num_breaks

    def get_workflow_handle(self, *args: object, **options: object) -> "OftenAway":
        return self

    async def describe(self, **options: object) -> Any:
        return SimpleNamespace(status=WorkflowExecutionStatus.RUNNING, typed_search_attributes={})

    async def result(self) -> LoopResult:
        self.num_breaks -= 1
        if self.num_breaks >= 0:
            raise RPCError("transport error", RPCStatusCode.UNKNOWN, b"")
        return RESULT


async def test_result_is_waited_for_as_long_as_the_server_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_handle, "PATIENCE_SECONDS", 0)
    handle = LoopHandle(cast("Client", OftenAway(2)), "x")
    assert await handle.result() == RESULT
