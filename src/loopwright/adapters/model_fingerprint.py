"""The fingerprint of a model: what must agree for one model's weights to serve as another's."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from loopwright.adapters.model_directory import read_object

_IRRELEVANT_FIELDS = frozenset(
    {
        *("_name_or_path", "name_or_path", "transformers_version"),
        *("dtype", "torch_dtype", "use_cache"),
    }
)
"""Fields that saving a model changes, and that neither weights nor rendering depend on."""

_FILES = (
    *("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "*.model"),
    *("chat_template.json", "*.jinja"),
)
"""Files that decide what weights mean, and which token ids a conversation becomes."""


def model_fingerprint(directory: Path) -> str:
    """Digest the architecture, tokenizer and chat template of a Hugging Face model directory.

    Weights, their precision and the layout of the JSON files do not count.

    Raises:
        UserError: the directory holds no configuration, or a file of it is damaged.
    """
    digest = hashlib.sha256()
    for name, content in _parts(directory):
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _parts(directory: Path) -> Iterator[tuple[str, bytes]]:
    # Without a configuration there is no model, whatever else is there.
    read_object(directory / "config.json")
    for path in sorted({path for pattern in _FILES for path in directory.glob(pattern)}):
        yield path.name, _content(path)


def _content(path: Path) -> bytes:
    if path.suffix != ".json":
        return path.read_bytes()
    kept = {k: value for k, value in read_object(path).items() if k not in _IRRELEVANT_FIELDS}
    return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()
