"""The example configurations are configurations."""

import subprocess
import sys
from pathlib import Path

import pytest

from loopwright.cli.config_files import read_config
from loopwright.contracts.configs import LoopConfig

EXAMPLES = Path(__file__).parents[2] / "examples"


def make_model(directory: Path) -> None:
    """Make what looks like a model directory from outside."""
    directory.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (directory / name).write_text("{}")
    (directory / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_example_passes_the_check(path: Path, tmp_path: Path) -> None:
    make_model(tmp_path / "my-policy")
    done = subprocess.run(
        [sys.executable, "-m", "loopwright.cli", "config", "check", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_commented_example_has_every_default() -> None:
    assert read_config(EXAMPLES / "loop.yaml") == LoopConfig()


def test_commented_example_has_every_key() -> None:
    text = (EXAMPLES / "loop.yaml").read_text()
    fields = LoopConfig.model_json_schema()["$defs"].values()
    keys = {key for section in fields for key in section.get("properties", {})}
    assert {key for key in keys if f"{key}:" not in text} == set()
