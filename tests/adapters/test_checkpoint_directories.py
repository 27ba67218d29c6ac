"""Checkpoints on a host's disk: whole, or fetched again."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from loopwright.adapters.checkpoint_directories import materialise_policy, materialise_tokenizer
from loopwright.adapters.checkpoint_files import (
    CheckpointFile,
    CheckpointManifest,
    keep_file,
    keep_manifest,
    read_manifest,
)
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.contracts.failures import ArtifactDamaged, ContractError
from loopwright.contracts.policies import CheckpointRef, PolicyVersion

TOKENIZER = {"config.json": b"{}", "tokenizer.json": b"words"}
FILES = {**TOKENIZER, "model.safetensors": b"weights"}


@pytest.fixture
def store() -> InMemoryObjectStore:
    return InMemoryObjectStore()


def keep(
    store: InMemoryObjectStore, folder: Path, version: int = 0, **changes: bytes
) -> CheckpointRef:
    """Store a checkpoint; ``changes`` name files without their ending."""
    source = folder / "source"
    source.mkdir(exist_ok=True)
    kept = []
    for name, content in FILES.items():
        path = source / name
        path.write_bytes(changes.get(path.stem, content))
        kept.append(keep_file(store, path, prefix="p"))
    policy = PolicyVersion(policy_id="p", version=version)
    manifest = CheckpointManifest(policy=policy, model_fingerprint="f", model=tuple(kept))
    return keep_manifest(store, manifest, prefix="p")


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def cut_short(directory: Path) -> None:
    (directory / "model.safetensors").write_bytes(b"weig")


def change_a_byte(directory: Path) -> None:
    (directory / "model.safetensors").write_bytes(b"Weights")


def lose_a_file(directory: Path) -> None:
    (directory / "config.json").unlink()


def add_a_file(directory: Path) -> None:
    (directory / "other.safetensors").write_bytes(b"weights")


def lose_everything(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.mkdir()


def be_a_file(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.write_bytes(b"")


@pytest.mark.parametrize(
    "damage", [cut_short, change_a_byte, lose_a_file, add_a_file, lose_everything, be_a_file]
)
def test_damaged_directory_is_fetched_again(
    store: InMemoryObjectStore, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    checkpoint, directory = keep(store, tmp_path), tmp_path / "cache" / "v0"
    materialise_policy(store, checkpoint, directory)
    damage(directory)
    materialise_policy(store, checkpoint, directory)
    assert content(directory) == FILES
    assert [path.name for path in directory.parent.iterdir()] == ["v0"]


def test_whole_directory_is_not_fetched_again(store: InMemoryObjectStore, tmp_path: Path) -> None:
    checkpoint = keep(store, tmp_path)
    materialise_policy(store, checkpoint, tmp_path / "v0")
    store.delete(file.artifact.key for file in read_manifest(store, checkpoint.manifest).model)
    materialise_policy(store, checkpoint, tmp_path / "v0")
    assert content(tmp_path / "v0") == FILES


def test_directory_appears_only_with_all_its_files(
    store: InMemoryObjectStore, tmp_path: Path
) -> None:
    checkpoint = keep(store, tmp_path)
    store.objects[read_manifest(store, checkpoint.manifest).model[-1].artifact.key] = b"rot"
    with pytest.raises(ArtifactDamaged, match="damaged"):
        materialise_policy(store, checkpoint, tmp_path / "cache" / "v0")
    assert not list((tmp_path / "cache").iterdir())


def test_versions_with_one_tokenizer_share_its_directory(
    store: InMemoryObjectStore, tmp_path: Path
) -> None:
    first, second = keep(store, tmp_path), keep(store, tmp_path, version=1, model=b"trained")
    directory = materialise_tokenizer(store, first, tmp_path / "tokenizers")
    assert materialise_tokenizer(store, second, tmp_path / "tokenizers") == directory
    assert content(directory) == TOKENIZER


def test_other_tokenizer_has_a_directory_of_its_own(
    store: InMemoryObjectStore, tmp_path: Path
) -> None:
    first = materialise_tokenizer(store, keep(store, tmp_path), tmp_path / "tokenizers")
    other = keep(store, tmp_path, tokenizer=b"other words")
    assert materialise_tokenizer(store, other, tmp_path / "tokenizers") != first


def test_damaged_tokenizer_is_fetched_again(store: InMemoryObjectStore, tmp_path: Path) -> None:
    checkpoint = keep(store, tmp_path)
    directory = materialise_tokenizer(store, checkpoint, tmp_path)
    (directory / "tokenizer.json").write_bytes(b"")
    materialise_tokenizer(store, checkpoint, tmp_path)
    assert content(directory) == TOKENIZER


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/etc/x", "a/b"])
def test_file_outside_of_the_directory_is_refused(
    store: InMemoryObjectStore, tmp_path: Path, name: str
) -> None:
    artifact = read_manifest(store, keep(store, tmp_path).manifest).model[0].artifact
    manifest = CheckpointManifest(
        policy=PolicyVersion(policy_id="p", version=0),
        model_fingerprint="f",
        model=(CheckpointFile(path=name, artifact=artifact),),
    )
    with pytest.raises(ContractError, match="plain name"):
        materialise_policy(store, keep_manifest(store, manifest, prefix="p"), tmp_path / "v0")
