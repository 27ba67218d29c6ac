"""``loopwright watch``: the live progress of a loop."""

import asyncio
from pathlib import Path

from loopwright.cli import options


def watch(
    loop_id: options.Loop, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """Show the live progress of a loop until it ends; the exit status is 1 if it failed.

    With --json each change is one line, and the loop's result the last.

    Example: loopwright watch first
    """
    asyncio.run(_watch(loop_id, state=state, is_json=is_json))


async def _watch(loop_id: str, *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.live_view import LiveView
    from loopwright.cli.output import print_json

    handle = await (await connect(state)).loop(loop_id)
    if is_json:
        async for progress in handle.watch():
            print_json(progress)
        print_json(await handle.result())
        return
    with LiveView() as view:
        await view.follow(handle.watch())
    await handle.result()
