"""``loopwright set``: change the configuration of a running loop."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from loopwright.cli import options


def set_loop(
    loop_id: options.Loop,
    changes: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE...", help="Keys as in the configuration, with dots."),
    ],
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Change keys of a running loop; what starts later follows them.

    Example: loopwright set first train.learning_rate=1e-4 environments.program_steps.weight=2
    """
    asyncio.run(_set(loop_id, _read(changes), state=state, is_json=is_json))


async def _set(loop_id: str, changes: dict[str, Any], *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.output import print_json, say

    config = await (await (await connect(state)).loop(loop_id)).set(changes)
    keys = ", ".join(changes)
    say(f"loop {loop_id} goes on with the new {keys}", is_json=is_json)
    if is_json:
        print_json({"loop_id": loop_id, "config": config.model_dump(mode="json")})


def _read(words: list[str]) -> dict[str, Any]:
    """Read ``key=value`` words; values as in a configuration file."""
    from loopwright.cli.strict_yaml import YamlProblem, read_yaml

    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"expected KEY=VALUE, got {word!r}")
        if key in found:
            raise typer.BadParameter(f"{key} is given twice")
        try:
            document = read_yaml(text)
        except YamlProblem as problem:
            raise typer.BadParameter(f"{key}: {problem}") from None
        if document.problems:
            raise typer.BadParameter(f"{key}: {document.problems[0][1]}")
        found[key] = document.value
    return found
