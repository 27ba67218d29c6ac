"""``loopwright config check``: all problems of a configuration at once."""

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli import options

app = typer.Typer(no_args_is_help=True, help="Configurations.")


@app.callback()
def config() -> None:
    """Configurations."""


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file of a loop.")],
    is_json: options.Json = False,
) -> None:
    """Report all problems of a configuration; nothing is started.

    A configuration without problems is shown as resolved, with every default.

    Example: loopwright config check loop.yaml
    """
    import yaml

    from loopwright.cli.config_files import find_problems, read_config
    from loopwright.cli.output import print_json, say

    problems = find_problems(file)
    if problems and is_json:
        print_json({"file": str(file), "problems": problems, "config": None})
        raise typer.Exit(2)
    resolved = read_config(file).model_dump(mode="json")
    if is_json:
        print_json({"file": str(file), "problems": [], "config": resolved})
        return
    say(f"{file}: no problems; as resolved:")
    say(yaml.safe_dump(resolved, sort_keys=False).rstrip())
