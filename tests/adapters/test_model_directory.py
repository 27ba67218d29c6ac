"""What makes a directory a model's, and what makes two models one."""

import json
import os
import shutil
from pathlib import Path

import pytest

from loopwright.adapters.model_directory import (
    max_positions,
    model_files,
    model_problem,
    weights_files,
)
from loopwright.adapters.model_fingerprint import model_fingerprint
from loopwright.contracts.failures import UserError
from tests.policies import PICO_DIRECTORY


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PICO_DIRECTORY, tmp_path / "model"))


def edit(path: Path, **changes: object) -> None:
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | changes))


def test_policy_of_the_package_is_whole() -> None:
    assert model_problem(PICO_DIRECTORY) == ""


def test_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert model_problem(tmp_path / "absent") == f"there is no directory '{tmp_path / 'absent'}'"


def test_name_that_no_directory_can_have_is_refused() -> None:
    assert "cannot be read: File name too long" in model_problem(Path("a" * 300))


def test_weights_that_were_cut_off_are_named(model: Path) -> None:
    weights = model / "model.safetensors"
    whole = weights.stat().st_size
    os.truncate(weights, whole - 1)
    assert f"the end of model.safetensors ({whole} bytes, of which {whole - 1}" in (
        model_problem(model)
    )


def test_link_to_weights_that_are_gone_is_named(model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "model.safetensors").symlink_to(model / "gone")
    assert "model.safetensors' cannot be read: No such file" in model_problem(model)


def test_all_that_a_directory_lacks_is_named_at_once(tmp_path: Path) -> None:
    problem = model_problem(tmp_path)
    assert str(tmp_path) in problem
    assert "weights (*.safetensors), config.json, a tokenizer (tokenizer.json)" in problem


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_file_that_is_missing_is_named(model: Path, name: str) -> None:
    (model / name).unlink()
    with pytest.raises(UserError, match=name.replace("model.", "weights.*")):
        model_files(model)


def test_part_of_weights_that_is_missing_is_named(model: Path) -> None:
    (model / "model.safetensors").rename(model / "model-1-of-2.safetensors")
    parts = {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}
    edit(model / "model.safetensors.index.json", weight_map=parts)
    assert model_problem(model).endswith("it lacks model-2-of-2.safetensors")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("{", "config.json is not JSON"),
        ("[]", "config.json: expected a JSON object, got list"),
        ("{}", "config.json names no architectures"),
    ],
)
def test_damaged_configuration_is_named(model: Path, config: str, problem: str) -> None:
    (model / "config.json").write_text(config)
    assert problem in model_problem(model)


def test_weights_of_an_older_format_count_only_without_newer_ones(model: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(b"")
    assert [path.name for path in weights_files(model)] == ["model.safetensors"]
    (model / "model.safetensors").unlink()
    assert [path.name for path in weights_files(model)] == ["pytorch_model.bin"]
    assert model_problem(model) == ""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_position_embeddings": 64}, 64),
        ({"n_positions": 32}, 32),
        ({"text_config": {"max_position_embeddings": 16}}, 16),
        ({"vocab_size": 9}, None),
    ],
)
def test_positions_are_read_under_the_names_of_all_architectures(
    tmp_path: Path, config: dict[str, object], expected: int | None
) -> None:
    edit(tmp_path / "config.json", **config)
    assert max_positions(tmp_path) == expected


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("config.json", {"hidden_size": 7}),
        ("tokenizer.json", {"added_tokens": []}),
        ("tokenizer_config.json", {"eos_token": "<|other|>"}),
        ("tokenizer_config.json", {"chat_template": "{{ messages }}"}),
        ("special_tokens_map.json", {"pad_token": "<|other|>"}),
        ("added_tokens.json", {"<|other|>": 9}),
        ("chat_template.json", {"chat_template": "{{ messages }}"}),
        ("vocab.json", {"a": 1}),
    ],
)
def test_what_changes_weights_or_rendering_changes_the_fingerprint(
    model: Path, name: str, changes: dict[str, object]
) -> None:
    before = model_fingerprint(model)
    edit(model / name, **changes)
    assert model_fingerprint(model) != before


@pytest.mark.parametrize("name", ["chat_template.jinja", "tokenizer.model", "merges.txt"])
def test_files_that_are_no_json_count_to_the_byte(model: Path, name: str) -> None:
    before = model_fingerprint(model)
    with (model / name).open("a") as file:
        file.write(" ")
    assert model_fingerprint(model) != before


def test_weights_precision_and_layout_do_not_change_the_fingerprint(model: Path) -> None:
    before = model_fingerprint(model)
    (model / "model.safetensors").write_bytes(b"other weights")
    edit(model / "config.json", dtype="bfloat16", transformers_version="9")
    edit(model / "tokenizer_config.json", name_or_path="elsewhere")
    assert model_fingerprint(model) == before
