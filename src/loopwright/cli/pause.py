"""``loopwright pause``: let a loop wait."""

import asyncio
from pathlib import Path

from loopwright.cli import options


def pause(
    loop_id: options.Loop, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """Let the running iteration of a loop finish, then wait.

    Example: loopwright pause first
    """
    asyncio.run(_pause(loop_id, state=state, is_json=is_json))


async def _pause(loop_id: str, *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.output import print_json, say

    await (await (await connect(state)).loop(loop_id)).pause()
    say(f"loop {loop_id} pauses after its running iteration", is_json=is_json)
    if is_json:
        print_json({"loop_id": loop_id})
