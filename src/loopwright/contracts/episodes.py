"""What an episode takes and gives back, as it travels through Temporal."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import Contract
from loopwright.contracts.configs import EnvironmentConfig, EpisodeConfig, Profile
from loopwright.contracts.failures import Owner
from loopwright.contracts.policies import (
    CheckpointRef,
    PolicySpan,
    PolicyVersion,
    SamplingParams,
)
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.turns import StopReason, TurnHead

EpisodeKind = Literal["training", "evaluation", "audit"]


class Priority(Contract):
    """Temporal's priority of the work of one kind."""

    key: int = Field(default=3, ge=1, le=5)
    """1 is dispatched first."""
    fairness_key: str = ""
    """Who shares with whom: the loop's id."""
    fairness_weight: float = Field(default=1.0, ge=0.001, le=1000)


class EpisodeInput(Contract):
    """One attempt at one task by one policy version."""

    prefix: str
    """Key prefix of the episode's artifacts; mirrors the workflow id, with the loop's uid."""
    kind: EpisodeKind
    task: TaskRef
    environment: EnvironmentConfig
    index: int = Field(ge=0)
    """Index of the episode in its group."""
    checkpoint: CheckpointRef
    """The checkpoint whose version must sample it; its tokenizer renders the conversation."""
    may_be_newer: bool = False
    """Whether later versions may sample it, too: each turn by the one served then."""
    engine: str
    """Name of the engine that serves the policy."""
    sampling: SamplingParams
    budgets: EpisodeConfig
    seed: int
    """Seed of the episode; the seed of a turn is derived from it."""
    priority: Priority = Priority()
    profile: Profile = "embedded"
    resume_from: TurnHead | None = None
    """Go on from this turn, which the episode's own log must hold, instead of the start."""

    @property
    def policy(self) -> PolicyVersion:
        """The version that must sample the episode."""
        return self.checkpoint.policy


class Verdict(StrEnum):
    """What a grader says of a final state."""

    PASS = "pass"
    FAIL = "fail"
    TIMEOUT = "timeout"
    OOM = "oom"
    OUTPUT_LIMIT = "output_limit"
    CRASHED = "crashed"
    DENIED = "denied"
    NO_VERDICT = "no_verdict"


class Component(Contract):
    """One named part of a reward."""

    score: float
    weight: float
    valid: bool = True
    """False excludes the component, and with it the reward."""


class Grade(Contract):
    """Verdict, components and reward of one final state.

    Example:
        ``Grade(verdict="pass", components={"cases": Component(score=1, weight=0.5)}, reward=0.5)``
    """

    verdict: Verdict
    components: dict[str, Component]
    reward: float | None
    """Weighted sum of the valid components; None when there is no valid verdict."""


class EpisodeFailure(Contract):
    """Why an episode has no outcome of its own."""

    owner: Owner
    type: str
    """Name of the error, as in ``failures``."""
    message: str


EpisodeStatus = Literal["graded", "truncated", "failed", "cancelled", "parked"]


class EpisodeResult(Contract):
    """How the attempt ended."""

    index: int
    status: EpisodeStatus
    stop_reason: StopReason
    verdict: Verdict = Verdict.NO_VERDICT
    reward: float | None = None
    """The rubric's number; None when the episode could not be graded."""
    components: dict[str, Component] = Field(default_factory=dict)
    num_turns: int = 0
    num_completion_tokens: int = 0
    first_answer_passed: bool = False
    """Whether the first completion alone was a full pass."""
    policy_span: PolicySpan | None = None
    trajectory: ArtifactRef | None = None
    failure: EpisodeFailure | None = None
    head: TurnHead | None = None
    """Where a parked episode goes on."""


class TakeTurnsRequest(Contract):
    """Take turns of an episode from ``head`` until a stop or ``max_turns`` more."""

    episode: EpisodeInput
    head: TurnHead
    max_turns: int = Field(ge=1)


class TakeTurnsResult(Contract):
    """Where the episode stands after the turns."""

    head: TurnHead
    stop_reason: StopReason | None
    """None when the episode goes on."""
    num_completion_tokens: int
    """Completion tokens of the whole episode so far."""
    policy_span: PolicySpan | None


class GradeEpisodeRequest(Contract):
    """Grade the final state that ``head`` leads to, and write the trajectory."""

    episode: EpisodeInput
    head: TurnHead
    stop_reason: StopReason


class GradeEpisodeResult(Contract):
    """The grade, and the trajectory that carries it."""

    grade: Grade
    trajectory: ArtifactRef
    first_answer_passed: bool
