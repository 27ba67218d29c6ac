"""Evaluations: a fixed policy version over held-out tasks."""

from typing import Literal

from pydantic import Field

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import Contract
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.policies import CheckpointRef


class Estimate(Contract):
    """A mean with its uncertainty, clustered by task."""

    mean: float
    low: float | None
    """Lower end of the 95 % confidence interval; None when one task alone has values."""
    high: float | None
    """Upper end of the 95 % confidence interval; None when one task alone has values."""


class EvaluationInput(Contract):
    """One evaluation of one policy version."""

    prefix: str
    name: str
    config: LoopConfig
    checkpoint: CheckpointRef
    holder: str
    """Workflow id that holds the engine's lease."""
    loop_id: str
    iteration: int = 0
    """Iterations the policy has had."""
    num_tasks: int = Field(ge=2)
    samples: int = Field(ge=1)


class EvaluateRequest(Contract):
    """Ask a loop to evaluate its present version (update ``evaluate``); gives the name.

    The evaluation is the workflow ``loop/L/evaluation/NAME``, which begins when its turn among the
    iterations has come.
    """

    name: str = Field(min_length=1, max_length=200)
    """Its name in the loop; a name that was asked for already is not evaluated again."""
    num_tasks: int | None = Field(default=None, ge=2, le=200)
    """None takes the loop's."""
    samples: int | None = Field(default=None, ge=1, le=64)
    """Episodes of each task; None takes the loop's."""


class EvaluationResult(Contract):
    """Pass rates of one policy version on the same tasks as every other."""

    outcome: Literal["completed", "stopped"] = "completed"
    """Rates of a stopped evaluation are of the episodes that had ended by then."""
    policy_version: int
    iteration: int = 0
    """Iterations the policy has had."""
    num_tasks: int
    samples: int
    num_episodes: int
    num_failed: int
    num_cancelled: int = 0
    """Episodes that were cancelled before their end."""
    num_lost: int
    first_pass_rate: Estimate | None
    """Of the first answer; None when no episode has a reward."""
    pass_rate: Estimate | None
    """Of the last answer."""
    mean_reward: Estimate | None
    seconds: float
    report: ArtifactRef | None = None
