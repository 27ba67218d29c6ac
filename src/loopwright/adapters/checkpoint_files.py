"""What a checkpoint is in the store: its files, and a manifest that names them all."""

import hashlib
from pathlib import Path

import pydantic

from loopwright.adapters.artifacts import fetch, keep
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import SCHEMA_VERSION, Contract
from loopwright.contracts.failures import ContractError
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.core.protocols import ObjectStore


class CheckpointFile(Contract):
    """One file of a checkpoint."""

    path: str
    """Name within the directory."""
    artifact: ArtifactRef


class CheckpointManifest(Contract):
    """What a checkpoint is made of; written after all that it names."""

    schema_version: int = SCHEMA_VERSION
    policy: PolicyVersion
    model_fingerprint: str
    """Digest of architecture, tokenizer and chat template."""
    model: tuple[CheckpointFile, ...]
    """Files of the Hugging Face model directory: weights, configuration, tokenizer."""
    trainer_state: ArtifactRef | None = None
    """Optimiser and random state after the update; None before the first one."""
    parent: str = ""
    """Digest of the manifest this version was trained from; empty for version 0."""
    request: str = ""
    """Digest of the request that made it, so that a repeated one finds it."""
    metrics: dict[str, float] = pydantic.Field(default_factory=dict)
    """Metrics of the update."""


def keep_file(store: ObjectStore, path: Path, *, prefix: str) -> CheckpointFile:
    """Store one file of a model directory; equal files share their object.

    Raises:
        StoreError: the store could not take it.
    """
    name = path.name
    artifact = keep(
        store, path.read_bytes(), prefix=prefix, name="model", suffix=f"-{name}", kind="checkpoint"
    )
    return CheckpointFile(path=name, artifact=artifact)


def keep_manifest(
    store: ObjectStore, manifest: CheckpointManifest, *, prefix: str
) -> CheckpointRef:
    """Store the manifest, which makes the checkpoint exist.

    Raises:
        StoreError: the store could not take it.
    """
    artifact = keep(
        store,
        manifest.model_dump_json().encode(),
        prefix=prefix,
        name=_manifest_name(manifest.policy),
        suffix=".json",
        kind="checkpoint",
    )
    return _reference(manifest, artifact)


def find_checkpoint(
    store: ObjectStore, policy: PolicyVersion, *, request: str, prefix: str
) -> CheckpointRef | None:
    """Find what an earlier attempt at a request stored; None when none finished.

    Of several the one with the least key counts, for every later attempt alike.
    """
    for key in store.list_keys(f"{prefix}/{_manifest_name(policy)}-"):
        data = store.get(key)
        artifact = ArtifactRef(
            key=key,
            sha256=hashlib.sha256(data).hexdigest(),
            num_bytes=len(data),
            kind="checkpoint",
        )
        if artifact.sha256[:32] in key:
            manifest = read_manifest(store, artifact)
            if manifest.request == request and manifest.policy == policy:
                return _reference(manifest, artifact)
    return None


def read_manifest(store: ObjectStore, ref: ArtifactRef) -> CheckpointManifest:
    """Read the manifest of a checkpoint.

    Raises:
        ArtifactDamaged: it is missing or damaged.
        ContractError: it is not a manifest of this schema.
    """
    try:
        return CheckpointManifest.model_validate_json(fetch(store, ref))
    except pydantic.ValidationError as error:
        raise ContractError(f"{ref.key} is not a checkpoint manifest: {error}") from error


def digest_of(request: Contract) -> str:
    """Digest a request, to find again what it made."""
    return hashlib.sha256(request.model_dump_json().encode()).hexdigest()


def _manifest_name(policy: PolicyVersion) -> str:
    return f"checkpoint-{policy.version:06d}"


def _reference(manifest: CheckpointManifest, artifact: ArtifactRef) -> CheckpointRef:
    return CheckpointRef(
        policy=manifest.policy, manifest=artifact, model_fingerprint=manifest.model_fingerprint
    )
