"""Policy versions as directories beside the engine, each immutable once it is there."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from loopwright.contracts.ids import slug
from loopwright.contracts.policies import CheckpointRef

Materialise = Callable[[CheckpointRef, Path], None]
"""Fetches a checkpoint's model files into a directory. Blocking."""

_NUM_KEPT = 3
_UNFINISHED = "unfinished-"


class PolicyDirectories:
    """A cache of the newest versions. Blocking; one caller at a time."""

    def __init__(self, root: Path, materialise: Materialise, *, num_kept: int = _NUM_KEPT) -> None:
        """Keep at most ``num_kept`` versions under ``root``."""
        self._root = root
        self._materialise = materialise
        self._num_kept = num_kept

    def get(self, checkpoint: CheckpointRef) -> Path:
        """Give the directory of a version, fetched unless it is there.

        Raises:
            StoreError: the checkpoint could not be fetched.
        """
        directory = self._directory(checkpoint)
        if not directory.is_dir():
            self._fetch(checkpoint, directory)
        return directory

    def prune(self, checkpoint: CheckpointRef) -> None:
        """Remove all but ``checkpoint`` and the newest others, and what was never finished."""
        present = [path for path in self._root.iterdir() if path.is_dir()]
        present.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        finished = [path for path in present if not path.name.startswith(_UNFINISHED)]
        current = self._directory(checkpoint)
        kept = [current, *(path for path in finished if path != current)][: self._num_kept]
        for path in set(present) - set(kept):
            shutil.rmtree(path, ignore_errors=True)

    def _directory(self, checkpoint: CheckpointRef) -> Path:
        """Name a version's directory; the digest tells apart two makings of one version."""
        return self._root / f"{slug(checkpoint.policy.label)}-{checkpoint.manifest.sha256[:12]}"

    def _fetch(self, checkpoint: CheckpointRef, directory: Path) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._root))
        try:
            self._materialise(checkpoint, unfinished)
            unfinished.rename(directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
