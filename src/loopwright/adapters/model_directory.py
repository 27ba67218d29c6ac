"""Model directories of Hugging Face: whether all is there, and which of its files are what.

Everything that takes one asks here, so a directory is good for all of them or for none. Whether
weights that are there in full can be loaded is found out by loading them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loopwright.contracts.failures import UserError

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""The first pattern that matches counts."""
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
_OTHER_FILES = ("*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt")
_INDEX = ".index.json"
"""End of the name of a file that lists the parts of weights in several files."""
_MAX_HEADER_BYTES = 100_000_000
"""Longest header of a safetensors file, by its format."""
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
"""Names under which architectures keep the number of their positions."""


def model_problem(directory: Path) -> str:
    """Say what keeps a directory from being a model's, all lacks at once; empty for a model."""
    try:
        if not directory.is_dir():
            return f"there is no directory {str(directory)!r}"
        if lacks := list(_lacks(directory)):
            return (
                f"{str(directory)!r} is not the directory of a Hugging Face causal language "
                f"model: it lacks {', '.join(lacks)}"
            )
        config = read_object(directory / "config.json")
    except UserError as error:
        return str(error)
    except OSError as error:
        return f"{(error.filename or str(directory))[:200]!r} cannot be read: {error.strerror}"
    return "" if config.get("architectures") else f"{directory}/config.json names no architectures"


def model_files(directory: Path) -> list[Path]:
    """List the files of a model directory that belong to a checkpoint.

    Raises:
        UserError: the directory is not a model's.
    """
    if problem := model_problem(directory):
        raise UserError(problem)
    return sorted({*weights_files(directory), *other_files(directory)})


def weights_files(directory: Path) -> list[Path]:
    """List the files of the weights, with the index of their parts."""
    for pattern in _WEIGHTS:
        if found := {*directory.glob(pattern)}:
            return sorted({*found, *directory.glob(pattern + _INDEX)})
    return []


def other_files(directory: Path) -> list[Path]:
    """List the files of configuration, tokenizer and chat template."""
    found = {path for pattern in _OTHER_FILES for path in directory.glob(pattern)}
    return sorted(path for path in found if not is_of_weights(path.name))


def is_of_weights(name: str) -> bool:
    """Tell whether a file belongs to the weights."""
    return name.endswith((".safetensors", ".bin", _INDEX))


def max_positions(directory: Path) -> int | None:
    """Read the most tokens that a model takes; None where no configuration names a bound."""
    try:
        config = read_object(directory / "config.json")
    except UserError:
        return None
    inner = config.get("text_config")
    places = (config, inner if isinstance(inner, dict) else {})
    found = [place.get(name) for place in places for name in _POSITIONS]
    return min((number for number in found if isinstance(number, int) and number), default=None)


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds a JSON object.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UserError(f"{path}: expected a JSON object, got {type(found).__name__}")
    return found


def _lacks(directory: Path) -> Iterator[str]:
    if not weights_files(directory):
        yield "weights (*.safetensors)"
    yield from _missing_parts(directory)
    yield from _cut_off(directory)
    if not (directory / "config.json").is_file():
        yield "config.json"
    if not any((directory / name).is_file() for name in _TOKENIZERS):
        yield "a tokenizer (tokenizer.json)"


def _missing_parts(directory: Path) -> Iterator[str]:
    """Name what the index of the weights lists and the directory has not."""
    for index in weights_files(directory):
        if index.name.endswith(_INDEX):
            parts = read_object(index).get("weight_map")
            names = {str(name) for name in parts.values()} if isinstance(parts, dict) else set()
            yield from sorted(name for name in names if not (directory / name).is_file())


def _cut_off(directory: Path) -> Iterator[str]:
    """Name the weights that end before their header says."""
    for path in sorted(directory.glob("*.safetensors")):
        there, expected = path.stat().st_size, _size_by_header(path)
        if there < expected:
            yield f"the end of {path.name} ({expected} bytes, of which {there} are there)"


def _size_by_header(path: Path) -> int:
    """Read how long a safetensors file is to be; 0 where its header cannot be read."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = stream.read(min(length, _MAX_HEADER_BYTES))
    try:
        tensors = json.loads(header)
        ends = [entry["data_offsets"][1] for entry in tensors.values() if "data_offsets" in entry]
        return 8 + length + max(ends, default=0)
    except (ValueError, LookupError, TypeError, AttributeError):
        return 0
