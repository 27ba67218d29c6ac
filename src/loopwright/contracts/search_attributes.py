"""The search attributes by which workflows are found; a namespace has to have all of them."""

from temporalio.common import SearchAttributeKey

LOOP_NAME = SearchAttributeKey.for_keyword("LoopName")
LOOP_STATUS = SearchAttributeKey.for_keyword("LoopStatus")
"""Set where Temporal's own status says less: pausing, paused, stopping, stopped."""
ITERATION = SearchAttributeKey.for_int("Iteration")
POLICY_VERSION = SearchAttributeKey.for_int("PolicyVersion")
TASK_ID = SearchAttributeKey.for_keyword("TaskId")
STOP_REASON = SearchAttributeKey.for_keyword("StopReason")
EPISODE_STATUS = SearchAttributeKey.for_keyword("EpisodeStatus")
REWARD = SearchAttributeKey.for_float("Reward")

_ALL = (
    *(LOOP_NAME, LOOP_STATUS, TASK_ID, STOP_REASON, EPISODE_STATUS),
    *(ITERATION, POLICY_VERSION),
    REWARD,
)

TYPES: dict[str, str] = {key.name: key.indexed_value_type.name.title() for key in _ALL}
"""Type of each by its name, as ``temporal operator search-attribute create`` takes them."""
