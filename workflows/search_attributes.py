"""The search attributes by which workflows are found; set at the start, or once at the end."""

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

LOOP_NAME = SearchAttributeKey.for_keyword("LoopName")
ITERATION = SearchAttributeKey.for_int("Iteration")
TASK_ID = SearchAttributeKey.for_keyword("TaskId")
POLICY_VERSION = SearchAttributeKey.for_int("PolicyVersion")
STOP_REASON = SearchAttributeKey.for_keyword("StopReason")
EPISODE_STATUS = SearchAttributeKey.for_keyword("EpisodeStatus")
REWARD = SearchAttributeKey.for_float("Reward")


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
