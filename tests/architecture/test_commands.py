"""Every command of the console script says what it does and shows an example."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from loopwright.cli.app import app

HEAVY = {"torch", "transformers", "vllm", "boto3", "pandas", "matplotlib"}


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Walk the tree; give each command with the words that call it."""
    children = getattr(command, "commands", None)
    if children is None:
        yield " ".join(words), command
        return
    for name, child in children.items():
        yield from commands(child, (*words, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_help_of_command_has_an_example(words: str) -> None:
    text = " ".join((COMMANDS[words].help or "").split())
    assert "Example" in text
    assert f"loopwright {words}" in text


@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_every_command_can_answer_in_json(words: str) -> None:
    options = {name for parameter in COMMANDS[words].params for name in parameter.opts}
    assert "--json" in options


def test_help_loads_no_heavy_library() -> None:
    code = (
        "import sys\nfrom loopwright.cli.app import app\n"
        "app(['--help'], standalone_mode=False)\nprint('MODULES', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(done.stdout.rpartition("MODULES")[2].split())
