"""The record of an episode in token space: what the trainer learns from."""

from pydantic import model_validator

from loopwright.contracts.base import SCHEMA_VERSION, Contract
from loopwright.contracts.commands import CommandRecord
from loopwright.contracts.episodes import Component, EpisodeKind, Verdict
from loopwright.contracts.policies import PolicyVersion
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.turns import StopReason


class Sample(Contract):
    """One unbroken token sequence; parallel sequences of length T.

    Example:
        ``Sample(token_ids=(5, 6, 7), loss_mask=(False, True, True),
        behaviour_logprobs=(0.0, -0.1, -0.7), versions=(-1, 3, 3), turns=(-1, 0, 0))``
    """

    token_ids: tuple[int, ...]
    """Ids as the engine took and returned them, ``(T,)``."""
    loss_mask: tuple[bool, ...]
    """True where the policy sampled the token and it is trained, ``(T,)``."""
    behaviour_logprobs: tuple[float, ...]
    """Natural log of the sampling probability; 0 where the mask is false, ``(T,)``."""
    versions: tuple[int, ...]
    """Policy version that sampled the token; -1 where the mask is false, ``(T,)``."""
    turns: tuple[int, ...]
    """Turn that sampled the token; -1 where the mask is false, ``(T,)``."""

    @model_validator(mode="after")
    def _is_parallel(self) -> "Sample":
        lengths = {
            len(self.token_ids),
            len(self.loss_mask),
            len(self.behaviour_logprobs),
            len(self.versions),
            len(self.turns),
        }
        if len(lengths) != 1:
            raise ValueError(f"the sequences of a sample must be equally long, got {lengths}")
        return self


class Trajectory(Contract):
    """One episode, as a list of samples: one, unless the context was rewritten on the way."""

    schema_version: int = SCHEMA_VERSION
    episode: str
    """Key prefix of the episode."""
    head: str = ""
    """Digest of the last turn's record, whose chain of parents is what was graded."""
    kind: EpisodeKind
    task: TaskRef
    policy: PolicyVersion
    samples: tuple[Sample, ...]
    turn_rewards: tuple[float, ...]
    """One per turn."""
    stop_reason: StopReason
    verdict: Verdict
    reward: float | None
    components: dict[str, Component]
    workspace: str | None
    """Digest of the final workspace."""
    grader: str
    """Digest of the hidden material the grade rests on."""
    grading: tuple[CommandRecord, ...] = ()
    """Commands that graded the final state, in the order of their ends."""
