"""``loopwright stop``: end a loop."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli import options


def stop(
    loop_id: options.Loop,
    now: Annotated[
        bool, typer.Option("--now", help="Cancel the running iteration instead of finishing it.")
    ] = False,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """End a loop after its running iteration, or now.

    Example: loopwright stop first --now
    """
    asyncio.run(_stop(loop_id, now=now, state=state, is_json=is_json))


async def _stop(loop_id: str, *, now: bool, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.output import print_json, say

    await (await (await connect(state)).loop(loop_id)).stop(now=now)
    when = "now" if now else "after its running iteration"
    say(f"loop {loop_id} ends {when}", is_json=is_json)
    if is_json:
        print_json({"loop_id": loop_id, "now": now})
