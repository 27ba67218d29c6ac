"""The search attributes of workflows, as they are set."""

from temporalio import workflow
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from loopwright.contracts.search_attributes import (
    EPISODE_STATUS,
    ITERATION,
    LOOP_NAME,
    LOOP_STATUS,
    POLICY_VERSION,
    REWARD,
    STOP_REASON,
    TASK_ID,
)

__all__ = [
    "EPISODE_STATUS",
    "LOOP_STATUS",
    "REWARD",
    "STOP_REASON",
    "at_start",
    "listed_status",
]


def listed_status(info: workflow.Info) -> str:
    """Give the status under which a loop is listed; it outlives continue-as-new."""
    return info.typed_search_attributes.get(LOOP_STATUS) or "running"


def at_start(
    *, loop_id: str, iteration: int, policy_version: int, task_id: str | None = None
) -> TypedSearchAttributes:
    """Name what is known when a workflow starts."""
    pairs: list[SearchAttributePair[str] | SearchAttributePair[int]] = [
        SearchAttributePair(LOOP_NAME, loop_id),
        SearchAttributePair(ITERATION, iteration),
        SearchAttributePair(POLICY_VERSION, policy_version),
    ]
    if task_id is not None:
        pairs.append(SearchAttributePair(TASK_ID, task_id))
    return TypedSearchAttributes(pairs)
