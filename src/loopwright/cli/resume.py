"""``loopwright resume``: let a paused loop go on."""

import asyncio
from pathlib import Path

from loopwright.cli import options


def resume(
    loop_id: options.Loop, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """Let a paused loop go on.

    Example: loopwright resume first
    """
    asyncio.run(_resume(loop_id, state=state, is_json=is_json))


async def _resume(loop_id: str, *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.output import print_json, say

    await (await (await connect(state)).loop(loop_id)).resume()
    say(f"loop {loop_id} goes on", is_json=is_json)
    if is_json:
        print_json({"loop_id": loop_id})
