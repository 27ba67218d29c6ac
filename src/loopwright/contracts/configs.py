"""The configuration of a loop, as resolved: every default lives here."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from loopwright.contracts.base import Configuration
from loopwright.contracts.engines import InFlight
from loopwright.contracts.policies import SamplingParams
from loopwright.contracts.workspaces import Limits

PICO = "pico"
"""Name of the base policy shipped with the package."""


MAX_GROUPS = 200
"""Groups of an iteration; their manifests are one payload."""
MAX_SPARE_GROUPS = 16
"""Groups that may be begun in addition, and so be carried; what a loop carries is one payload."""

MIN_TEMPERATURE = 0.01
"""Engines take a temperature between 0 and this one for this one."""

Profile = Literal["embedded", "cluster", "many_open"]
"""Heartbeat timeouts: 20 s on one machine, 120 s in a cluster, 300 s above 5,000 open episodes."""


class PolicyConfig(Configuration):
    """Where the first weights come from."""

    model: str = PICO
    """``pico`` or the directory of a Hugging Face causal language model."""


class EnvironmentConfig(Configuration):
    """One environment and its share of the tasks."""

    id: str = "program_steps"
    weight: float = Field(default=1.0, gt=0)
    """Share of an iteration's tasks, relative to the other environments."""
    fairness_weight: float | None = Field(default=None, ge=0.01, le=100)
    """Share of the workers among the loop's environments that wait for one; null is ``weight``."""
    max_concurrent: int | None = Field(default=None, ge=1)
    """Episodes of the environment at once on one host, whichever loops they are of; null is any."""
    is_passed_by: bool = False
    """Whether iterations to come draw none of its tasks; evaluations do."""
    difficulties_passed_by: tuple[int, ...] = Field(default=(), max_length=100)
    """Difficulties of tasks that iterations to come do not draw; evaluations do."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the environment, which checks them."""


class EngineConfig(Configuration):
    """One engine the loop may use."""

    name: str = Field(default="main", pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")


class IterationConfig(Configuration):
    """How much experience one iteration collects."""

    num_tasks: int = Field(default=24, ge=1, le=MAX_GROUPS)
    """Groups of an iteration."""
    group_size: int = Field(default=8, ge=2, le=64)
    """Episodes of a group, G."""
    advantage: Literal["grpo", "dr_grpo", "rloo"] = "grpo"
    """Estimator of the group baseline."""
    max_replacements: int = Field(default=3, ge=0, le=8)
    """Fresh episodes of a group for those that the platform failed; 0 replaces none at all.

    One more may replace an episode that its task failed.
    """
    min_group_share: float = Field(default=0.9, gt=0, le=1)
    """Share of ``num_tasks`` without whose groups an iteration does not learn."""
    max_skipped_tasks: int = Field(default=100, ge=0)
    """Groups that their tasks may lose, in the life of a loop, before it stops."""
    max_infra_drops_in_a_row: int = Field(default=10, ge=0)
    """Groups that the platform may lose, with none scored between, before the loop stops."""
    max_staleness: int = Field(default=0, ge=0, le=8)
    """Versions that a token may be behind the one trained from; 0 is exactly on-policy.

    Above 0 the next iterations collect while earlier ones train.
    """
    in_flight: InFlight = "turn_end"
    """What a publication does with completions under way."""
    spare_groups: int = Field(default=0, ge=0, le=MAX_SPARE_GROUPS)
    """Groups begun beyond ``num_tasks``, so that the slowest need not be waited for."""
    stragglers: Literal["wait", "drop", "carry"] = "wait"
    """What becomes of open groups once ``num_tasks`` are scored.

    ``wait`` learns from them, too; ``drop`` cancels them; ``carry`` parks them at their turn, and
    the next iteration goes on with them.
    """
    max_open_groups: int | None = Field(default=None, ge=1)
    """Groups under way at once; null is all of them."""
    watchdog_seconds: float = Field(default=600, ge=1, le=86_400)
    """Silence after which an iteration says that nothing ends."""


class EpisodeConfig(Configuration):
    """Budgets of one episode."""

    max_turns: int = Field(default=2, ge=1, le=200)
    max_tokens: int = Field(default=400, ge=2)
    """Tokens of the whole conversation; must fit the engine's context."""
    max_seconds: float = Field(default=600, gt=0, le=86_400)
    """Wall-clock time of all turns together; what an episode waits between them is not counted."""
    turns_per_activity: int = Field(default=8, ge=1)
    """Turns one activity may take; each is committed in any case."""
    limits: Limits = Limits()
    """Sandbox limits of each command."""


class TrainConfig(Configuration):
    """The update."""

    learning_rate: float = Field(default=2e-4, gt=0, le=1)
    final_learning_rate_share: float = Field(default=0.1, gt=0, le=1)
    """Share of ``learning_rate`` in the last iteration, linear in between; 1 keeps it constant."""
    num_minibatches: int = Field(default=4, ge=1)
    """Optimiser steps of an iteration, at most one a group; groups are divided among them."""
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    clip_high: float = Field(default=0.28, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    tokens_per_microbatch: int = Field(default=16_384, ge=64)
    """Padded tokens of one forward pass; does not change the result."""
    max_mismatch: float = Field(default=0.05, gt=0)
    """Mean |trainer - behaviour logprob| before the first step, beyond which training refuses."""


class EvaluationConfig(Configuration):
    """Evaluation on held-out tasks."""

    num_tasks: int = Field(default=128, ge=2, le=200)
    samples: int = Field(default=4, ge=1, le=64)
    """Episodes of each task."""
    at_start: bool = True
    """Evaluate the base policy before the first iteration."""
    at_end: bool = True
    """Evaluate the last policy after the last iteration; no policy is evaluated twice."""
    every: int = Field(default=0, ge=0)
    """Evaluate after every so many iterations; 0 is never."""


class LoopConfig(Configuration):
    """A loop: what is trained, on what, and for how long."""

    policy: PolicyConfig = PolicyConfig()
    environments: tuple[EnvironmentConfig, ...] = Field(
        default=(EnvironmentConfig(),), min_length=1
    )
    engines: tuple[EngineConfig, ...] = Field(default=(EngineConfig(),), min_length=1, max_length=1)
    iteration: IterationConfig = IterationConfig()
    episode: EpisodeConfig = EpisodeConfig()
    sampling: SamplingParams = SamplingParams()
    train: TrainConfig = TrainConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    profile: Profile = "embedded"
    """How soon a silent activity counts as lost."""
    fairness_weight: float = Field(default=1.0, ge=0.01, le=100)
    """Share of the workers among the loops that wait for one; evaluations go first in any case."""
    num_iterations: int | None = Field(default=12, ge=0, le=100_000)
    """Iterations before the loop ends; null keeps it open for updates that ask for more."""
    target_pass_rate: float | None = Field(default=None, gt=0, le=1)
    """End early when the first-answer pass rate of two iterations in a row reaches this."""
    seed: int = Field(default=0, ge=0, lt=2**31)

    @model_validator(mode="after")
    def check_budgets(self) -> "LoopConfig":
        """Refuse keys that do not fit each other."""
        if problems := self.budget_problems():
            raise ValueError("; ".join(problems))
        return self

    def budget_problems(self) -> list[str]:
        """Say which keys do not fit each other; each text begins with the one to blame."""
        return [
            *self._environment_problems(),
            *self._token_problems(),
            *self._sampling_problems(),
            *self._straggler_problems(),
        ]

    def _environment_problems(self) -> Iterator[str]:
        if all(environment.is_passed_by for environment in self.environments):
            yield (
                "environments: expected one that is not passed by; let the loop pause instead, or "
                "set is_passed_by of one to false"
            )

    def _token_problems(self) -> Iterator[str]:
        if self.sampling.max_tokens >= self.episode.max_tokens:
            yield (
                f"sampling.max_tokens ({self.sampling.max_tokens}) must be smaller than "
                f"episode.max_tokens ({self.episode.max_tokens}): no prompt would fit"
            )

    def _sampling_problems(self) -> Iterator[str]:
        """Refuse what the trainer cannot reproduce; a loop without iterations may sample so."""
        if 0 < self.sampling.temperature < MIN_TEMPERATURE:
            yield (
                f"sampling.temperature ({self.sampling.temperature}) must be 0 or at least "
                f"{MIN_TEMPERATURE}: engines sample no colder"
            )
        if self.num_iterations == 0:
            return
        if self.sampling.temperature == 0:
            yield (
                "sampling.temperature (0) must be above 0: greedy episodes of a group are all "
                "alike, and teach nothing"
            )
        if self.sampling.top_p < 1 or self.sampling.top_k > 0:
            yield (
                f"sampling.top_p ({self.sampling.top_p}) must be 1 and sampling.top_k "
                f"({self.sampling.top_k}) 0: the trainer computes probabilities over every token"
            )

    def _straggler_problems(self) -> Iterator[str]:
        num_begun = self.iteration.num_tasks + self.iteration.spare_groups
        if num_begun > MAX_GROUPS:
            yield (
                f"iteration.spare_groups ({self.iteration.spare_groups}) and iteration.num_tasks "
                f"({self.iteration.num_tasks}) must be at most {MAX_GROUPS} together"
            )
        if self.iteration.stragglers == "carry" and self.iteration.max_staleness == 0:
            yield (
                "iteration.stragglers (carry) needs an iteration.max_staleness of at least 1: "
                "carried groups were begun by an older version"
            )
