"""Checkpoints: weights, optimiser and random state <-> artifacts, the manifest last."""

import tempfile
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from loopwright.adapters.artifacts import fetch, keep
from loopwright.adapters.checkpoint_directories import materialise_policy
from loopwright.adapters.checkpoint_files import (
    CheckpointFile,
    CheckpointManifest,
    keep_file,
    keep_manifest,
    read_manifest,
)
from loopwright.adapters.model_directory import is_of_weights, model_files, weights_files
from loopwright.adapters.model_fingerprint import model_fingerprint
from loopwright.contracts.failures import UserError
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.core.protocols import ObjectStore
from loopwright.learning.trainer import Trainer

_MOMENTS = ("exp_avg", "exp_avg_sq", "step")
_RANDOM_STATE = "random_state"


def import_directory(
    store: ObjectStore, directory: Path, policy: PolicyVersion, *, prefix: str
) -> CheckpointRef:
    """Store a Hugging Face model directory as a checkpoint.

    Raises:
        UserError: the directory is not a model's.
        StoreError: the store could not take it.
    """
    files = model_files(directory)
    manifest = CheckpointManifest(
        policy=policy,
        model_fingerprint=model_fingerprint(directory),
        model=tuple(keep_file(store, path, prefix=prefix) for path in files),
    )
    return keep_manifest(store, manifest, prefix=prefix)


def load_model_directory(directory: Path) -> Trainer:
    """Load a model directory for training, in float32, on a GPU where there is one."""
    disable_progress_bar()  # type: ignore[no-untyped-call]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, local_files_only=True
    )
    model.to(device)  # type: ignore[arg-type]  # the stub takes the wrapper for the method
    return Trainer(model)


def check_trainable(directory: Path) -> None:
    """Load a model directory once, to find now what training would find later.

    Raises:
        UserError: weights are damaged, or do not fit the configuration.
    """
    try:
        load_model_directory(directory)
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError, AttributeError) as error:
        raise UserError(f"the model in {directory} cannot be loaded: {error}") from error


def load_trainer(store: ObjectStore, checkpoint: CheckpointRef) -> Trainer:
    """Load a checkpoint to go on training where it was left.

    Raises:
        ArtifactDamaged: a file of it is missing or damaged.
    """
    manifest = read_manifest(store, checkpoint.manifest)
    with tempfile.TemporaryDirectory(prefix="loopwright-checkpoint-") as folder:
        directory = Path(folder) / "model"
        materialise_policy(store, checkpoint, directory)
        trainer = load_model_directory(directory)
    if manifest.trainer_state is not None:
        _set_state(trainer, safetensors.torch.load(fetch(store, manifest.trainer_state)))
    return trainer


def keep_checkpoint(
    store: ObjectStore,
    trainer: Trainer,
    policy: PolicyVersion,
    *,
    parent: CheckpointRef,
    request: str,
    metrics: dict[str, float],
    prefix: str,
) -> CheckpointRef:
    """Store what a trainer holds; tokenizer and configuration are those of the parent.

    Args:
        store: where to.
        trainer: weights and optimiser.
        policy: the version they are.
        parent: the checkpoint they were trained from.
        request: digest of the request that made them.
        metrics: of the update.
        prefix: key prefix.
    """
    state = keep(
        store,
        safetensors.torch.save(_state(trainer)),
        prefix=prefix,
        name="trainer-state",
        suffix=".safetensors",
        kind="checkpoint",
    )
    parents = read_manifest(store, parent.manifest).model
    others = [file for file in parents if not is_of_weights(file.path)]
    manifest = CheckpointManifest(
        policy=policy,
        model_fingerprint=parent.model_fingerprint,
        model=(*others, *_keep_weights(store, trainer, prefix)),
        trainer_state=state,
        parent=parent.manifest.sha256,
        request=request,
        metrics=metrics,
    )
    return keep_manifest(store, manifest, prefix=prefix)


def _keep_weights(store: ObjectStore, trainer: Trainer, prefix: str) -> list[CheckpointFile]:
    with tempfile.TemporaryDirectory(prefix="loopwright-checkpoint-") as folder:
        trainer.model.save_pretrained(folder)
        return [keep_file(store, path, prefix=prefix) for path in weights_files(Path(folder))]


def _state(trainer: Trainer) -> dict[str, Tensor]:
    """Flatten the optimiser's moments by parameter, with torch's random state."""
    found = {_RANDOM_STATE: torch.get_rng_state()}
    for name, parameter in trainer.model.named_parameters():
        moments = trainer.optimizer.state.get(parameter, {})
        for moment in _MOMENTS:
            if moment in moments:
                found[f"{moment}.{name}"] = moments[moment].detach().cpu().contiguous()
    return found


def _set_state(trainer: Trainer, state: dict[str, Tensor]) -> None:
    torch.set_rng_state(state[_RANDOM_STATE])
    for name, parameter in trainer.model.named_parameters():
        if f"step.{name}" in state:
            trainer.optimizer.state[parameter] = {
                "step": state[f"step.{name}"],
                "exp_avg": state[f"exp_avg.{name}"].to(parameter.device),
                "exp_avg_sq": state[f"exp_avg_sq.{name}"].to(parameter.device),
            }
