"""``loopwright worker``: one worker process of a pool."""

from typing import Annotated

import typer

from loopwright.cli import options


def worker(
    pool: Annotated[
        str, typer.Argument(metavar="POOL", help="`control`, `episode`, `engine` or `trainer`.")
    ],
    is_json: options.Json = False,
) -> None:
    """Run one worker process until it is told to stop; LOOPWRIGHT_* variables set it up.

    Example: loopwright worker episode
    """
    from loopwright.cli.output import print_json
    from loopwright.workers.__main__ import run

    status = run(pool)
    if is_json:
        print_json({"pool": pool, "exit_code": status})
    raise typer.Exit(status)
