"""Renderers by checkpoint: the tokenizer files come from the store, once per content."""

import threading
from pathlib import Path

from loopwright.adapters.checkpoint_directories import materialise_tokenizer
from loopwright.contracts.policies import CheckpointRef
from loopwright.core.protocols import ObjectStore
from loopwright.trajectories.rendering import Renderer


class RendererCache:
    """Builds each renderer once; versions of one policy share theirs."""

    def __init__(self, store: ObjectStore, directory: Path) -> None:
        """Keep tokenizers of ``store`` below ``directory``."""
        self._store = store
        self._directory = directory
        self._renderers: dict[str, Renderer] = {}
        self._lock = threading.Lock()

    def get(self, checkpoint: CheckpointRef) -> Renderer:
        """Give the renderer of a checkpoint's tokenizer and chat template.

        Raises:
            StoreError: the tokenizer's files cannot be had.
            ContractError: the chat template cannot be rendered token for token.
        """
        key = checkpoint.model_fingerprint or checkpoint.manifest.sha256
        with self._lock:
            if key not in self._renderers:
                directory = materialise_tokenizer(self._store, checkpoint, self._directory)
                self._renderers[key] = Renderer(directory)
            return self._renderers[key]
