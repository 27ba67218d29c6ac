"""Leases of engines and publication of policy versions to them."""

from typing import Literal

from pydantic import Field

from loopwright.contracts.base import Contract
from loopwright.contracts.policies import CheckpointRef, PolicyVersion, SamplingParams, VersionSpan

InFlight = Literal["turn_end", "re_prefill", "keep"]
"""What a publication does with completions under way.

``turn_end`` lets them end first, so one version samples each; ``re_prefill`` holds them, and goes
on from their tokens with keys and values computed afresh; ``keep`` goes on at once, with keys and
values of both versions mixed.
"""


class AcquireLeaseRequest(Contract):
    """Ask for an engine."""

    engine: str
    holder: str
    """Workflow id of the holder; a lease of a closed workflow is void."""
    model_fingerprint: str
    """Fingerprint of the model the holder wants served."""


class AcquireLeaseResult(Contract):
    """Whether the lease was granted, and who holds it."""

    is_granted: bool
    holder: str
    """Workflow id of the present holder."""


class ReleaseLeaseRequest(Contract):
    """Give an engine back; no effect when ``holder`` does not hold it."""

    engine: str
    holder: str


class LoadPolicyRequest(Contract):
    """Make ``checkpoint`` the version that the engine serves."""

    engine: str
    holder: str
    checkpoint: CheckpointRef
    in_flight: InFlight = "turn_end"


class LoadPolicyResult(Contract):
    """The version as read back from the engine."""

    label: str
    seconds: float


class GenerateRequest(Contract):
    """Token ids in."""

    token_ids: tuple[int, ...] = Field(min_length=1)
    policy: PolicyVersion
    """The version that must sample; a completion of another is refused."""
    may_be_newer: bool = False
    """Whether later versions of the same policy may sample, too."""
    sampling: SamplingParams
    max_tokens: int = Field(ge=1)
    stop_token_ids: tuple[int, ...]
    seed: int
    priority_key: int = Field(default=3, ge=1, le=5)
    """Smaller ones go first where requests wait for the engine."""


class Completion(Contract):
    """Token ids out, with what the engine knows of them."""

    token_ids: tuple[int, ...]
    """Sampled ids, the stop token included when it was sampled."""
    behaviour_logprobs: tuple[float, ...]
    """Natural log of each token's sampling probability, after temperature, top-p and top-k."""
    finish_reason: str
    """stop or length."""
    version_spans: tuple[VersionSpan, ...]
    waited_seconds: float = 0.0
    """Time before the engine was asked; the platform's, not the episode's."""
