"""The search attributes by which workflows are found."""

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

LOOP_NAME = SearchAttributeKey.for_keyword("LoopName")
ITERATION = SearchAttributeKey.for_int("Iteration")
TASK_ID = SearchAttributeKey.for_keyword("TaskId")
POLICY_VERSION = SearchAttributeKey.for_int("PolicyVersion")
STOP_REASON = SearchAttributeKey.for_keyword("StopReason")
EPISODE_STATUS = SearchAttributeKey.for_keyword("EpisodeStatus")
LOOP_STATUS = SearchAttributeKey.for_keyword("LoopStatus")
"""Set where Temporal's own status says less: pausing, paused, stopping, stopped."""
REWARD = SearchAttributeKey.for_float("Reward")


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
