"""Groups: the episodes of one task in one iteration or evaluation."""

from typing import Literal

from pydantic import Field

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import SCHEMA_VERSION, Contract
from loopwright.contracts.episodes import EpisodeInput, EpisodeResult
from loopwright.contracts.tasks import TaskRef


class GroupInput(Contract):
    """G episodes of one task."""

    episode: EpisodeInput
    """The episodes' common input; index, prefix and seed are set for each."""
    loop_id: str
    iteration: int
    size: int
    """Number of episodes, G."""
    advantage: Literal["grpo", "dr_grpo", "rloo"]
    max_replacements: int = 0
    """Fresh episodes for those that the platform failed; 0 replaces none at all."""
    parked: ArtifactRef | None = None
    """What the group left when it was parked, under this id: it goes on from there.

    Iteration and priority are taken from this input then, all else from what it left.
    """


class EpisodeRequest(Contract):
    """Names an episode under way in a group (updates ``cancel_episode``, ``requeue_episode``)."""

    index: int = Field(ge=0)


class ScoreGroupRequest(Contract):
    """Score the finished episodes of a group together."""

    prefix: str
    task: TaskRef
    advantage: Literal["grpo", "dr_grpo", "rloo"]
    episodes: tuple[EpisodeResult, ...]
    """In the order of their indices; those from the size on replaced others."""
    size: int | None = None
    """Number of episodes asked for, G; None where none was replaced."""


class ParkGroupRequest(Contract):
    """Store where a group stands."""

    group: GroupInput
    episodes: tuple[EpisodeResult, ...]
    """All that it began, in the order of their indices; those under way with their head."""


class LoadParkedRequest(Contract):
    """Read where a group stands."""

    parked: ArtifactRef


class ParkedGroup(Contract):
    """The stored record of a group that goes on later."""

    schema_version: int = SCHEMA_VERSION
    group: GroupInput
    episodes: tuple[EpisodeResult, ...]
    """All that it began, in the order of their indices; those under way with their head."""


class ParkedRef(Contract):
    """A group that a later iteration may go on with."""

    task: TaskRef
    group_id: str
    """Its workflow id, under which it is to be started again."""
    artifact: ArtifactRef
    oldest_version: int | None
    """Oldest policy version that sampled a token of it; None before the first."""
    num_episodes: int = 0
    """Episodes that it began."""


class GroupManifest(Contract):
    """The stored record of a group: its episodes and their advantages."""

    schema_version: int = SCHEMA_VERSION
    task: TaskRef
    episodes: tuple[EpisodeResult, ...]
    advantages: tuple[float | None, ...]
    """One per episode; None where the episode has no valid reward."""
    size: int | None = None
    """Number of episodes asked for, G; None where none was replaced."""


DroppedBy = Literal["infra", "data", "no_signal", ""]
"""The platform, the task, or rewards that are all alike; empty where it is nobody's doing."""


class GroupResult(Contract):
    """Numbers of a group; everything else is in its manifest."""

    task: TaskRef
    num_episodes: int
    """Episodes with a recorded outcome."""
    num_valid: int
    """Episodes with a reward."""
    num_passed: int
    """Valid episodes whose verdict is pass."""
    num_first_passed: int
    """Valid episodes whose first answer was a full pass."""
    num_cancelled: int = 0
    """Recorded episodes that were cancelled before their end."""
    num_replaced: int = 0
    """Recorded episodes that failed and were replaced by fresh ones."""
    mean_reward: float | None
    """Mean over valid episodes; None when there is none."""
    num_completion_tokens: int
    oldest_version: int | None = None
    """Oldest policy version that sampled a token of it; None before the first."""
    is_admitted: bool
    """Whether the group may enter a batch."""
    reason: str
    """Why it is not admitted; empty when it is."""
    dropped_by: DroppedBy = ""
    """Who is behind the reason; empty for a group that is admitted, cancelled or parked."""
    manifest: ArtifactRef | None
    """None when the group itself failed, was cancelled or is parked."""
    parked: ParkedRef | None = None
    """Where a parked group stands; its episodes count where it ends."""


class DropCounts(Contract):
    """Dropped groups, as the limits of a loop count them."""

    num_skipped_tasks: int = 0
    """Groups that their tasks lost, in the life of the loop."""
    num_infra_drops_in_a_row: int = 0
    """Groups that the platform lost since one was scored."""
