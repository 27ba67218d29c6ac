"""What the trainer pool takes and gives."""

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import Contract
from loopwright.contracts.configs import TrainConfig
from loopwright.contracts.policies import CheckpointRef, PolicyVersion


class ImportPolicyRequest(Contract):
    """Make version 0 of a policy from a model directory."""

    model: str
    """``pico`` or a directory that the trainer can read."""
    policy: PolicyVersion
    prefix: str


class BuildBatchRequest(Contract):
    """Gather the trajectories of admitted groups."""

    prefix: str
    groups: tuple[ArtifactRef, ...]
    """Group manifests; at most 200."""


class BuildBatchResult(Contract):
    """A batch, stored so that its update can be repeated."""

    batch: ArtifactRef
    num_trajectories: int
    num_trained_tokens: int


class TrainStepRequest(Contract):
    """Update ``parent`` on ``batch`` and store the result as ``policy``."""

    prefix: str
    parent: CheckpointRef
    policy: PolicyVersion
    """Identity of the version the update makes."""
    batch: ArtifactRef
    config: TrainConfig
    temperature: float
    """Temperature the batch was sampled at; logits are divided by it."""
    seed: int


class TrainStepResult(Contract):
    """The new checkpoint and the metrics of the update."""

    checkpoint: CheckpointRef
    metrics: dict[str, float]
    """Loss, gradient norm, clip fraction, entropy and mismatch, by name."""
    seconds: float
