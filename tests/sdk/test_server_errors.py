"""What the errors of the Temporal server and of the way to it mean."""

import pytest
from temporalio.service import RPCError, RPCStatusCode

from loopwright.contracts.failures import LoopError
from loopwright.sdk.server_errors import LoopUnanswered, translated


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (RPCStatusCode.UNAVAILABLE, "tcp connect error"),
        (RPCStatusCode.UNKNOWN, "transport error"),
        (RPCStatusCode.INTERNAL, "h2 protocol error: error reading a body from connection"),
        (RPCStatusCode.FAILED_PRECONDITION, "no poller seen for task queue recently"),
    ],
)
def test_connection_that_ends_before_the_answer_is_no_answer(
    status: RPCStatusCode, said: str
) -> None:
    with pytest.raises(LoopUnanswered), translated("x"):
        raise RPCError(said, status, b"")


def test_what_the_server_refuses_is_told_as_it_says() -> None:
    with pytest.raises(LoopError, match="refuses: no such thing") as refused, translated("x"):
        raise RPCError("no such thing", RPCStatusCode.UNKNOWN, b"")
    assert not isinstance(refused.value, LoopUnanswered)
