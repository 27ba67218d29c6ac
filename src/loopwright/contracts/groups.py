"""Groups: the episodes of one task in one iteration or evaluation."""

from typing import Literal

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


class ScoreGroupRequest(Contract):
    """Score the finished episodes of a group together."""

    prefix: str
    task: TaskRef
    advantage: Literal["grpo", "dr_grpo", "rloo"]
    episodes: tuple[EpisodeResult, ...]


class GroupManifest(Contract):
    """The stored record of a group: its episodes and their advantages."""

    schema_version: int = SCHEMA_VERSION
    task: TaskRef
    episodes: tuple[EpisodeResult, ...]
    advantages: tuple[float | None, ...]
    """One per episode; None where the episode has no valid reward."""


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
    mean_reward: float | None
    """Mean over valid episodes; None when there is none."""
    num_completion_tokens: int
    is_admitted: bool
    """Whether the group may enter a batch."""
    reason: str
    """Why it is not admitted; empty when it is."""
    manifest: ArtifactRef | None
    """None when the group itself failed or was cancelled."""
