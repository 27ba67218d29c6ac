from pathlib import Path

import pytest
import torch

from loopwright.adapters.checkpoint_files import find_checkpoint, read_manifest
from loopwright.adapters.model_directory import model_files
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.contracts.configs import TrainConfig
from loopwright.contracts.failures import ArtifactDamaged, UserError
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.learning.checkpoints import (
    import_directory,
    keep_checkpoint,
    load_trainer,
)
from loopwright.learning.trainer import Trainer
from tests.learning.models import batch_of, on_policy_rows, save_tiny_model, tiny_trainer

V0 = PolicyVersion(policy_id="p", version=0)
V1 = PolicyVersion(policy_id="p", version=1)
CONFIG = TrainConfig(num_minibatches=1, max_mismatch=5.0)


def imported(store: InMemoryObjectStore, folder: Path) -> CheckpointRef:
    return import_directory(store, save_tiny_model(folder), V0, prefix="loop/x")


def keep(store: InMemoryObjectStore, trainer: Trainer, parent: CheckpointRef) -> CheckpointRef:
    return keep_checkpoint(
        store, trainer, V1, parent=parent, request="r", metrics={"loss": 1.0}, prefix="loop/x"
    )


def update(trainer: Trainer, seed: int) -> None:
    rows = on_policy_rows(tiny_trainer())
    trainer.reinforce(batch_of(rows), CONFIG, version=0, temperature=1.0, seed=seed)


def test_imported_model_loads_with_the_same_weights(tmp_path: Path) -> None:
    store = InMemoryObjectStore()
    loaded = load_trainer(store, imported(store, tmp_path))
    for ours, theirs in zip(
        loaded.model.parameters(), tiny_trainer().model.parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_importing_twice_gives_the_same_checkpoint(tmp_path: Path) -> None:
    store = InMemoryObjectStore()
    assert imported(store, tmp_path) == imported(store, tmp_path)


def test_training_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    store = InMemoryObjectStore()
    v0 = imported(store, tmp_path)
    warm = load_trainer(store, v0)
    update(warm, seed=1)
    cold = load_trainer(store, keep(store, warm, v0))
    update(warm, seed=2)
    update(cold, seed=2)
    for ours, theirs in zip(warm.model.parameters(), cold.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_new_version_keeps_the_tokenizer_of_its_parent(tmp_path: Path) -> None:
    store = InMemoryObjectStore()
    v0 = imported(store, tmp_path)
    v1 = keep(store, load_trainer(store, v0), v0)
    files = {f.path: f.artifact for f in read_manifest(store, v1.manifest).model}
    parents = {f.path: f.artifact for f in read_manifest(store, v0.manifest).model}
    assert files["tokenizer.json"] == parents["tokenizer.json"]
    assert v1.model_fingerprint == v0.model_fingerprint


def test_finished_request_is_found_and_another_is_not(tmp_path: Path) -> None:
    store = InMemoryObjectStore()
    v0 = imported(store, tmp_path)
    v1 = keep(store, load_trainer(store, v0), v0)
    assert find_checkpoint(store, V1, request="r", prefix="loop/x") == v1
    assert find_checkpoint(store, V1, request="other", prefix="loop/x") is None


def test_damaged_manifest_is_as_good_as_none(tmp_path: Path) -> None:
    store = InMemoryObjectStore()
    v0 = imported(store, tmp_path)
    v1 = keep(store, load_trainer(store, v0), v0)
    store.objects[v1.manifest.key] += b" "
    assert find_checkpoint(store, V1, request="r", prefix="loop/x") is None
    with pytest.raises(ArtifactDamaged, match="damaged"):
        load_trainer(store, v1)


def test_manifest_is_written_after_all_that_it_names(tmp_path: Path) -> None:
    written: list[str] = []

    class Recording(InMemoryObjectStore):
        def put(self, key: str, data: bytes) -> None:
            written.append(key)
            super().put(key, data)

    store = Recording()
    v0 = imported(store, tmp_path)
    v1 = keep(store, load_trainer(store, v0), v0)
    assert written[-1] == v1.manifest.key
    assert written.index(v0.manifest.key) == len(model_files(tmp_path))


def test_directory_without_a_model_is_not_imported(tmp_path: Path) -> None:
    (save_tiny_model(tmp_path) / "model.safetensors").unlink()
    store = InMemoryObjectStore()
    with pytest.raises(UserError, match=r"lacks weights"):
        import_directory(store, tmp_path, V0, prefix="loop/x")
    assert not store.objects
