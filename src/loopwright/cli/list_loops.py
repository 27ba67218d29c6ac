"""``loopwright list``: all loops."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli import options


def list_loops(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Loops to show at most.")] = 50,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """List loops, the last started first.

    Example: loopwright list
    """
    asyncio.run(_list_loops(limit, state=state, is_json=is_json))


async def _list_loops(limit: int, *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.output import print_json, say

    loops = await (await connect(state)).list_loops(limit=limit)
    if is_json:
        print_json({"loops": [loop.model_dump(mode="json") for loop in loops]})
        return
    if not loops:
        say("no loops; `loopwright start CONFIG` starts one")
    for loop in loops:
        closed = f", ended {loop.closed_at:%Y-%m-%d %H:%M}" if loop.closed_at else ""
        say(f"{loop.loop_id:30} {loop.status:10} started {loop.started_at:%Y-%m-%d %H:%M}{closed}")
