"""Policies, their versions, and how completions are sampled from them."""

from typing import Literal

from pydantic import Field, model_validator

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import Configuration, Contract


class PolicyVersion(Contract):
    """The identity of one set of weights at the engines.

    Example:
        ``PolicyVersion(policy_id="digits-3f2a", version=12).label == "digits-3f2a@12"``
    """

    policy_id: str
    """Identity of the policy: loop id and the start of the loop's uid."""
    version: int = Field(ge=0)
    """Count of publications, from 0."""
    kind: Literal["full", "adapter"] = "full"
    """Whether the weights are whole or an adapter over ``base``."""
    base: str | None = None
    """Label of the version an adapter belongs to; None for full weights."""

    @model_validator(mode="after")
    def check_base(self) -> "PolicyVersion":
        """Refuse an adapter over nothing, and full weights over something."""
        if self.kind == "adapter" and not self.base:
            raise ValueError("base: expected the label of the version that the adapter is over")
        if self.kind == "full" and self.base is not None:
            raise ValueError(f"base: expected none for full weights, got {self.base!r}")
        return self

    @property
    def label(self) -> str:
        """The name under which engines serve this version."""
        return f"{self.policy_id}@{self.version}"

    def version_of(self, label: str) -> int | None:
        """Read the version from a label of the same policy; None when it is another's."""
        policy_id, _, version = label.rpartition("@")
        return int(version) if policy_id == self.policy_id and version.isdecimal() else None


class PolicySpan(Contract):
    """Oldest and newest version that produced an episode's tokens."""

    oldest: int
    newest: int


class VersionSpan(Contract):
    """The version that sampled tokens ``start`` to ``end`` (exclusive) of one completion."""

    version: int
    start: int
    end: int


class CheckpointRef(Contract):
    """A checkpoint: its manifest names every file, and is written last."""

    policy: PolicyVersion
    manifest: ArtifactRef
    model_fingerprint: str = ""
    """Digest of architecture, tokenizer and chat template; engines refuse another's weights."""


class SamplingParams(Configuration):
    """How the engine samples; behaviour logprobs are recorded as sampled."""

    temperature: float = Field(default=1.0, ge=0.0, le=10.0)
    """Softmax temperature; 0 is greedy."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Nucleus mass; 1 keeps every token."""
    top_k: int = Field(default=0, ge=0)
    """Number of tokens kept; 0 keeps every token."""
    max_tokens: int = Field(default=96, ge=1)
    """Most tokens of one completion."""
