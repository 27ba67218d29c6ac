"""Turn records for tests."""

from typing import Any

from loopwright.contracts.policies import VersionSpan
from loopwright.contracts.turns import Message, StopReason, TurnRecord


def record(
    index: int = 0,
    *,
    parent: str = "",
    prompt: tuple[int, ...] = (1, 2),
    completion: tuple[int, ...] = (3, 4),
    version: int = 0,
    fingerprint: str = "f",
    **changes: Any,
) -> TurnRecord:
    """Make a record of one turn."""
    values: dict[str, Any] = {
        "index": index,
        "parent": parent,
        "fingerprint": fingerprint,
        "prompt_ids": prompt,
        "completion_ids": completion,
        "behaviour_logprobs": tuple(-0.1 * (i + 1) for i in range(len(completion))),
        "version_spans": (VersionSpan(version=version, start=0, end=len(completion)),),
        "finish_reason": "stop",
        "messages": (Message(role="user", content="again"),),
        "state": {},
    }
    return TurnRecord.model_validate(values | changes)


def last_record(index: int = 0, **changes: Any) -> TurnRecord:
    """Make a record that ends its episode."""
    return record(index, stop_reason=StopReason.COMPLETED, **changes)
