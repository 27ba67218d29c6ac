"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer


def path(text: str | Path) -> Path:
    """Read a path; an empty one is refused, for it would be the current folder."""
    if not str(text):
        raise typer.BadParameter("expected a path, got nothing")
    try:
        Path(text).exists()
    except OSError as error:  # a name too long, a folder that may not be looked into
        raise typer.BadParameter(f"{error.strerror}: {str(text)[:80]}") from error
    return Path(text)


STATE = Path(".loopwright")
ADDRESS = "LOOPWRIGHT_TEMPORAL_ADDRESS"
"""The variable that names another platform than the one on this machine."""

Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON; everything else on stderr.")
]
State = Annotated[
    Path,
    typer.Option(
        "--state", metavar="DIR", parser=path, help="Folder of the platform on this machine."
    ),
]
Loop = Annotated[str, typer.Argument(metavar="LOOP", help="Id of the loop; `list` shows them.")]
Episode = Annotated[
    str, typer.Argument(metavar="EPISODE", help="Id of the episode, as the Web UI shows it.")
]
