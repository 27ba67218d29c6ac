"""Policy versions as directories beside the engine, each immutable once it is there."""

import shutil
from collections.abc import Callable
from pathlib import Path

from loopwright.adapters.checkpoint_directories import UNFINISHED
from loopwright.contracts.ids import slug
from loopwright.contracts.policies import CheckpointRef

Materialise = Callable[[CheckpointRef, Path], None]
"""Has a checkpoint's model files in a directory, as its manifest says. Blocking."""

_NUM_KEPT = 3


class PolicyDirectories:
    """A cache of the newest versions. Blocking; one caller at a time."""

    def __init__(self, root: Path, materialise: Materialise, *, num_kept: int = _NUM_KEPT) -> None:
        """Keep at most ``num_kept`` versions under ``root``."""
        self._root = root
        self._materialise = materialise
        self._num_kept = num_kept
        self._proved: set[Path] = set()

    def get(self, checkpoint: CheckpointRef) -> Path:
        """Give the directory of a version; once in a process it is proved, or fetched anew.

        Raises:
            StoreError: the checkpoint could not be fetched.
        """
        directory = self._directory(checkpoint)
        if directory not in self._proved or not directory.is_dir():
            self._materialise(checkpoint, directory)
            self._proved.add(directory)
        return directory

    def prune(self, checkpoint: CheckpointRef) -> None:
        """Remove all but ``checkpoint`` and the newest others, and what was never finished."""
        present = [path for path in self._root.iterdir() if path.is_dir()]
        present.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        finished = [path for path in present if not path.name.startswith(UNFINISHED)]
        current = self._directory(checkpoint)
        kept = [current, *(path for path in finished if path != current)][: self._num_kept]
        self._proved &= set(kept)
        for path in set(present) - set(kept):
            shutil.rmtree(path, ignore_errors=True)

    def _directory(self, checkpoint: CheckpointRef) -> Path:
        """Name a version's directory; the digest tells apart two makings of one version."""
        return self._root / f"{slug(checkpoint.policy.label)}-{checkpoint.manifest.sha256[:12]}"
