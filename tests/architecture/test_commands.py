"""Every command of the console script says what it does and shows an example."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
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


REFUSED = {
    ("policy", "build", "no/such/place"): "has no parent directory",
    ("demo", "--iterations", "0"): "greater than or equal to 1",
    ("demo", "--state", "/dev/null"): "/dev/null is no writable folder",
    ("start", "nowhere.yaml"): "cannot be read",
    ("config", "check", "nowhere.yaml"): "cannot be read",
    ("report", "first"): "no platform runs",
    ("watch", "first"): "no platform runs",
    ("up", "--model", "nowhere"): "there is no directory 'nowhere'",
    ("worker", "cook"): "pool 'cook' does not exist",
    ("sandbox", "run", "--limits", "x=1", "--", "true"): "--limits",
    ("sandbox", "verify", "x"): "EPISODE: expected an id",
}
REFUSE = """
import sys
from loopwright.cli.app import run
from loopwright.cli.errors import reported_errors
try:
    with reported_errors():
        sys.exit(run())
finally:
    print("MODULES", *sys.modules)
"""


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_bad_usage_is_refused_before_a_heavy_library_is_loaded(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", REFUSE, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert REFUSED[words] in done.stderr
    assert not HEAVY & set(done.stdout.rpartition("MODULES")[2].split())
