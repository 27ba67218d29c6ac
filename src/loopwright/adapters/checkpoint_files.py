"""The files of a checkpoint: a manifest that names them all, and how to get them back."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pydantic

from loopwright.adapters.artifacts import fetch, keep
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import SCHEMA_VERSION, Contract
from loopwright.contracts.failures import ContractError
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.core.protocols import ObjectStore

_WEIGHTS_SUFFIXES = (".safetensors", ".bin")


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
        StoreError: it is missing or damaged.
        ContractError: it is not a manifest of this schema.
    """
    try:
        return CheckpointManifest.model_validate_json(fetch(store, ref))
    except pydantic.ValidationError as error:
        raise ContractError(f"{ref.key} is not a checkpoint manifest: {error}") from error


def materialise_policy(store: ObjectStore, checkpoint: CheckpointRef, directory: Path) -> None:
    """Fetch all model files of a checkpoint into a directory, each checked by its digest.

    Raises:
        StoreError: a file is missing or damaged.
    """
    _materialise(store, checkpoint, directory, lambda _name: True)


def materialise_tokenizer(store: ObjectStore, checkpoint: CheckpointRef, directory: Path) -> None:
    """Fetch everything but the weights, unless the directory is there: it appears whole.

    Raises:
        StoreError: a file is missing or damaged.
    """
    if directory.is_dir():
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=directory.parent))
    try:
        _materialise(store, checkpoint, unfinished, _is_no_weights)
        _appear(unfinished, directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _manifest_name(policy: PolicyVersion) -> str:
    return f"checkpoint-{policy.version:06d}"


def _reference(manifest: CheckpointManifest, artifact: ArtifactRef) -> CheckpointRef:
    return CheckpointRef(
        policy=manifest.policy, manifest=artifact, model_fingerprint=manifest.model_fingerprint
    )


def _appear(unfinished: Path, directory: Path) -> None:
    try:
        unfinished.rename(directory)
    except OSError:
        # Another process may have been faster; what it fetched is the same.
        if not directory.is_dir():
            raise


def _materialise(
    store: ObjectStore, checkpoint: CheckpointRef, directory: Path, is_wanted: Callable[[str], bool]
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for file in read_manifest(store, checkpoint.manifest).model:
        if is_wanted(file.path):
            _check_name(file.path)
            (directory / file.path).write_bytes(fetch(store, file.artifact))


def _is_no_weights(name: str) -> bool:
    return not name.endswith(_WEIGHTS_SUFFIXES)


def _check_name(name: str) -> None:
    if Path(name).name != name or name in ("", ".", ".."):
        raise ContractError(f"checkpoint file {name!r} must be a plain name")


def digest_of(request: Contract) -> str:
    """Digest a request, to find again what it made."""
    return hashlib.sha256(request.model_dump_json().encode()).hexdigest()
