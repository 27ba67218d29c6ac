"""``loopwright report``: a loop's HTML report."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli import options


def report(
    loop_id: options.Loop,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            parser=options.path,
            help="Where to; by default in DIR/reports.",
        ),
    ] = None,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Write a loop's report: one HTML file with curves and tables, which opens anywhere.

    Example: loopwright report first --output first.html
    """
    asyncio.run(_report(loop_id, output, state=state, is_json=is_json))


async def _report(loop_id: str, output: Path | None, *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect, store_of
    from loopwright.cli.output import print_json, say

    handle = await (await connect(state)).loop(loop_id)
    # matplotlib takes long to load: an unknown loop has been refused by now.
    from loopwright.cli.report_files import default_path, write_report

    path = output or default_path(state, loop_id)
    missing = await write_report(handle, path, store=store_of(state))
    for line in missing:
        say(line, is_json=True)
    say(f"report: {path}", is_json=is_json)
    if is_json:
        print_json({"loop_id": loop_id, "report": str(path)})
