"""Checkpoints as directories on this host, each just what its manifest says.

A directory appears under its name with all its files, but a host that crashes may lose what was
written last, and disks rot. So what is found is compared with the manifest before it is used.
"""

import hashlib
import logging
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from loopwright.adapters.artifacts import fetch
from loopwright.adapters.checkpoint_files import CheckpointFile, read_manifest
from loopwright.adapters.model_directory import is_of_weights
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.failures import ContractError
from loopwright.contracts.policies import CheckpointRef
from loopwright.core.protocols import ObjectStore

_logger = logging.getLogger(__name__)

UNFINISHED = "unfinished-"
"""Beginning of the names of directories that are being fetched, or were when the host crashed."""


def materialise_policy(store: ObjectStore, checkpoint: CheckpointRef, directory: Path) -> None:
    """Have all model files of a checkpoint in a directory; what is there and whole is kept.

    Raises:
        ArtifactDamaged: a file is missing or damaged in the store.
    """
    _materialise(store, _files(store, checkpoint), directory)


def materialise_tokenizer(store: ObjectStore, checkpoint: CheckpointRef, root: Path) -> Path:
    """Have everything but the weights in a directory below ``root``, named by its content.

    Raises:
        ArtifactDamaged: a file is missing or damaged in the store.
    """
    files = [file for file in _files(store, checkpoint) if not is_of_weights(file.path)]
    content = "\n".join(sorted(f"{file.path} {file.artifact.sha256}" for file in files))
    directory = root / hashlib.sha256(content.encode()).hexdigest()[:32]
    _materialise(store, files, directory)
    return directory


def _files(store: ObjectStore, checkpoint: CheckpointRef) -> tuple[CheckpointFile, ...]:
    files = read_manifest(store, checkpoint.manifest).model
    for file in files:
        if Path(file.path).name != file.path or file.path in ("", ".."):
            raise ContractError(f"checkpoint file {file.path!r} must be a plain name")
    return files


def _materialise(store: ObjectStore, files: Sequence[CheckpointFile], directory: Path) -> None:
    if _is_whole(directory, files):
        return
    if directory.exists():
        _logger.warning("%s is not what its manifest says; it is fetched again", directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=directory.parent))
    try:
        (unfinished / "new").mkdir()
        for file in files:
            (unfinished / "new" / file.path).write_bytes(fetch(store, file.artifact))
        if directory.exists():
            directory.rename(unfinished / "damaged")
        (unfinished / "new").rename(directory)
    except OSError:
        # Another process may have been faster; what it fetched is the same.
        if not _is_whole(directory, files):
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_whole(directory: Path, files: Sequence[CheckpointFile]) -> bool:
    """Tell whether a directory holds these files as they were written, and nothing else."""
    if not directory.is_dir():
        return False
    names = {path.name for path in directory.iterdir()}
    return names == {file.path for file in files} and all(
        _is_intact(directory / file.path, file.artifact) for file in files
    )


def _is_intact(path: Path, artifact: ArtifactRef) -> bool:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == artifact.sha256
    except OSError:
        return False
