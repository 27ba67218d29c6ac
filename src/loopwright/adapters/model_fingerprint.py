"""The fingerprint of a model: what must agree for one model's weights to serve as another's."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loopwright.contracts.failures import ContractError

_IRRELEVANT_FIELDS = frozenset(
    {"_name_or_path", "dtype", "torch_dtype", "transformers_version", "use_cache"}
)
"""Fields of config.json that saving a model changes, and its weights do not depend on."""

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt")


def model_fingerprint(directory: Path) -> str:
    """Digest the architecture, tokenizer and chat template of a Hugging Face model directory.

    Weights, their precision and the layout of the JSON files do not count.

    Raises:
        ContractError: the directory holds no model.
    """
    digest = hashlib.sha256()
    for name, content in _parts(directory):
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _parts(directory: Path) -> Iterator[tuple[str, bytes]]:
    config = _json_object(directory / "config.json")
    kept = {key: value for key, value in config.items() if key not in _IRRELEVANT_FIELDS}
    yield "config", _canonical(kept)
    for name in _TOKENIZER_FILES:
        path = directory / name
        if path.is_file():
            is_json = path.suffix == ".json"
            yield name, _canonical(_json_object(path)) if is_json else path.read_bytes()
    yield "chat template", _chat_template(directory)


def _chat_template(directory: Path) -> bytes:
    path = directory / "chat_template.jinja"
    if path.is_file():
        return _canonical(path.read_text())
    settings = directory / "tokenizer_config.json"
    return _canonical(_json_object(settings).get("chat_template") if settings.is_file() else None)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _json_object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ContractError(
            f"{path.parent} is not a model directory: cannot read {path.name}: {error}"
        ) from error
    if not isinstance(found, dict):
        raise ContractError(f"{path}: expected a JSON object, got {type(found).__name__}")
    return found
