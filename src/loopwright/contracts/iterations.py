"""Iterations and the loop that runs them."""

from typing import Any, Literal

from pydantic import Field

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import Contract
from loopwright.contracts.configs import EnvironmentConfig, LoopConfig
from loopwright.contracts.evaluations import EvaluateRequest, EvaluationResult
from loopwright.contracts.groups import DropCounts, ParkedRef
from loopwright.contracts.policies import CheckpointRef
from loopwright.contracts.tasks import Split, TaskRef

MAX_ITERATIONS = 100_000
"""Iterations that may be asked for at once."""

MAX_CHANGES = 100
"""Keys that may be set at once."""

IterationOutcome = Literal["trained", "skipped_no_signal", "stopped"]

LoopStatus = Literal[
    "running",
    "pausing",
    "paused",
    "stopping",
    "stopped",
    "completed",
    "failed",
    "cancelled",
    "terminated",
    "timed_out",
]
"""A pausing or stopping loop finishes its iteration first; the last six have ended."""
OPEN_STATUSES: tuple[LoopStatus, ...] = ("running", "pausing", "paused", "stopping")
"""Statuses of a loop that has not ended."""


class SelectTasksRequest(Contract):
    """Pick the tasks of an iteration or evaluation."""

    environments: tuple[EnvironmentConfig, ...]
    split: Split
    num_tasks: int
    seed: int
    """Same seed, same tasks."""
    num_spares: int = 0
    """Further tasks, or as many as there are."""


class SelectTasksResult(Contract):
    """The tasks, distinct, in the order they start."""

    tasks: tuple[TaskRef, ...]
    spares: tuple[TaskRef, ...] = ()
    """Further ones, to take the place of tasks whose groups are lost."""


class IterationInput(Contract):
    """One iteration of a loop."""

    loop_id: str
    loop_uid: str
    index: int = Field(ge=1)
    """Iteration number, from 1."""
    config: LoopConfig
    checkpoint: CheckpointRef
    """The version that acts, and that the update starts from unless a predecessor makes it."""
    holder: str
    """Workflow id that holds the engine's lease."""
    carried: tuple[ParkedRef, ...] = ()
    """Groups of earlier iterations to go on with."""
    drops: DropCounts = DropCounts()
    """Groups that the loop has lost so far."""
    num_ahead: int = 0
    """Unfinished iterations before this one; each makes at most one version."""
    has_predecessor: bool = False
    """Whether the update starts from what an unfinished iteration makes (signal learn_from)."""


class IterationResult(Contract):
    """What an iteration came to.

    Example:
        ``IterationResult(index=3, outcome="trained", num_episodes=192, pass_rate=0.61, ...)``
    """

    index: int
    outcome: IterationOutcome
    policy_version: int
    """The version after the iteration."""
    checkpoint: CheckpointRef | None
    """The checkpoint after the iteration; None in a loop's record, which keeps the newest."""
    num_episodes: int
    """Episodes asked for."""
    num_failed: int = 0
    """Episodes that ended without a reward of their own accord."""
    num_cancelled: int = 0
    """Episodes that were cancelled before their end, or given up with a parked group."""
    num_lost: int = 0
    """Episodes without a recorded outcome."""
    num_groups: int = 0
    num_admitted: int = 0
    """Groups that entered the batch."""
    num_carried: int = 0
    """Groups that were left for a later iteration."""
    num_skipped_tasks: int = 0
    """Groups that their own tasks lost."""
    num_infra_drops_in_a_row: int = 0
    """Groups that the platform lost since one was scored, in this loop."""
    num_too_old: int = 0
    """Groups that were left out because the policy had moved on too far."""
    pass_rate: float | None = None
    """Share of valid episodes that passed in the end."""
    first_pass_rate: float | None = None
    """Share of valid episodes whose first answer passed."""
    mean_reward: float | None = None
    num_completion_tokens: int = 0
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall seconds by phase: rollout, wait, batch, train, publish, total."""
    metrics: dict[str, float] = Field(default_factory=dict)
    """Metrics of the update."""
    report: ArtifactRef | None = None


class WriteReportRequest(Contract):
    """Write the breakdown of an iteration or evaluation."""

    prefix: str
    name: str
    """``iteration`` or ``evaluation``."""
    groups: tuple[ArtifactRef, ...]
    """Group manifests; at most 200."""


class LoopState(Contract):
    """What a loop carries across continue-as-new."""

    uid: str
    checkpoint: CheckpointRef | None = None
    num_done: int = 0
    """Iterations finished."""
    num_requested: int | None = 0
    """Iterations asked for; None keeps the loop open, idle when there is nothing to do."""
    results: tuple[IterationResult, ...] = ()
    """The newest 25; older ones are in the store."""
    base_evaluation: EvaluationResult | None = None
    evaluations: tuple[EvaluationResult, ...] = ()
    """Those between iterations, the newest 16; older ones are in the store."""
    final_evaluation: EvaluationResult | None = None
    asked_evaluations: tuple[EvaluateRequest, ...] = ()
    """Evaluations that were asked for and have not begun."""
    evaluation_names: tuple[str, ...] = ()
    """The newest 24 names that were asked for."""
    num_episodes: int = 0
    num_lost: int = 0
    is_paused: bool = False
    parked: tuple[ParkedRef, ...] = ()
    """Groups that the next iteration is to go on with."""
    drops: DropCounts = DropCounts()
    """Groups lost so far."""


class LoopInput(Contract):
    """A named, resumable sequence of iterations."""

    loop_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    config: LoopConfig
    state: LoopState | None = None
    """None for a new loop."""


class Collected(Contract):
    """What an iteration tells its loop once it has its groups (signal ``collected``)."""

    index: int
    parked: tuple[ParkedRef, ...] = ()
    """Groups that the next iteration is to go on with."""


class RunIterationsRequest(Contract):
    """Ask a loop for more iterations (update ``run_iterations``)."""

    num_iterations: int = Field(ge=1, le=MAX_ITERATIONS)


class StopRequest(Contract):
    """End a loop (update ``stop``)."""

    now: bool = False
    """Cancel the running iteration instead of finishing it."""


class SetRequest(Contract):
    """Change keys of a running loop's configuration (update ``set``)."""

    changes: dict[str, Any] = Field(min_length=1, max_length=MAX_CHANGES)
    """New values by key, as ``train.learning_rate``."""


LoopPhase = Literal[
    "starting", "waiting_for_engine", "evaluating", "iterating", "idle", "paused", "ended"
]


class LoopProgress(Contract):
    """The live state of a loop."""

    loop_id: str
    uid: str
    phase: LoopPhase
    status: LoopStatus = "running"
    detail: str = ""
    """What the phase waits for, in words."""
    iteration: int
    """The running iteration, or the last one."""
    num_done: int = 0
    """Iterations finished."""
    num_requested: int | None
    policy_version: int
    results: tuple[IterationResult, ...] = ()
    base_evaluation: EvaluationResult | None = None
    evaluations: tuple[EvaluationResult, ...] = ()
    """Those between iterations, the newest 16."""
    final_evaluation: EvaluationResult | None = None
    num_episodes: int = 0
    num_lost: int = 0


class LoopResult(Contract):
    """How a loop ended."""

    loop_id: str
    outcome: Literal["completed", "stopped"]
    checkpoint: CheckpointRef | None
    num_iterations: int
    """Iterations that it began; the last is a stopped one where the loop was stopped in it."""
    num_episodes: int
    num_lost: int
    base_evaluation: EvaluationResult | None = None
    evaluations: tuple[EvaluationResult, ...] = ()
    """Those between iterations, the newest 16."""
    final_evaluation: EvaluationResult | None = None
    results: tuple[IterationResult, ...] = ()
