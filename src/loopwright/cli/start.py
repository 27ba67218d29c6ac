"""``loopwright start``: start a loop from a YAML file."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopwright.cli import options

if TYPE_CHECKING:
    from loopwright.contracts.configs import LoopConfig
    from loopwright.sdk import LoopClient, LoopHandle


def start(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file of the loop.")],
    loop_id: Annotated[
        str | None, typer.Option("--id", metavar="LOOP", help="Id of the loop.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show progress until it ends.")] = False,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Start a loop from a YAML file.

    A loop of this id that runs with the same configuration already is not started again.

    Example: loopwright start loop.yaml --id first --watch
    """
    from loopwright.cli.config_files import read_config
    from loopwright.cli.connection import known_engines

    resolved = read_config(config, engines=known_engines(state))
    asyncio.run(_start(resolved, loop_id, watch=watch, state=state, is_json=is_json))


async def _start(
    config: "LoopConfig", loop_id: str | None, *, watch: bool, state: Path, is_json: bool
) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.live_view import LiveView
    from loopwright.cli.output import print_json, say

    client = await connect(state)
    handle, is_new = await _started_or_running(client, config, loop_id)
    say(_announcement(handle.loop_id, is_new=is_new), is_json=is_json)
    answer: dict[str, object] = {"loop_id": handle.loop_id, "is_new": is_new}
    if watch:
        with LiveView(stream=sys.stderr if is_json else sys.stdout) as view:
            await view.follow(handle.watch())
        answer["result"] = (await handle.result()).model_dump(mode="json")
    if is_json:
        print_json(answer)


async def _started_or_running(
    client: "LoopClient", config: "LoopConfig", loop_id: str | None
) -> "tuple[LoopHandle, bool]":
    """Start the loop, or find the same one running."""
    from loopwright.cli.config_difference import differences
    from loopwright.contracts.failures import UserError
    from loopwright.sdk.client import LoopRunsAlready

    try:
        return await client.start(config, loop_id=loop_id), True
    except LoopRunsAlready as error:
        assert loop_id is not None
        running = await client.loop(loop_id)
        different = differences(await running.config(), config)
        if different:
            raise UserError(
                f"{error}; it runs with another configuration: {'; '.join(different)}"
            ) from error
        return running, False


def _announcement(loop_id: str, *, is_new: bool) -> str:
    if is_new:
        return f"started loop {loop_id}; `loopwright watch {loop_id}` shows it"
    return f"loop {loop_id} runs already, with the same configuration"
