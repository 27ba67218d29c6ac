"""``loopwright describe``: one loop's state."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from loopwright.cli import options

if TYPE_CHECKING:
    from loopwright.sdk import LoopDescription


def describe(
    loop_id: options.Loop, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """Show one loop: status, iterations, evaluations and configuration.

    Example: loopwright describe first
    """
    asyncio.run(_describe(loop_id, state=state, is_json=is_json))


async def _describe(loop_id: str, *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.output import print_json, say

    description = await (await (await connect(state)).loop(loop_id)).describe()
    if is_json:
        print_json(description)
        return
    for line in _lines(description):
        say(line)


def _lines(description: "LoopDescription") -> list[str]:
    import yaml

    from loopwright.cli.wording import describe_course, describe_phase

    lines = [
        f"loop {description.loop_id}: {description.status}, "
        f"started {description.started_at:%Y-%m-%d %H:%M} UTC"
    ]
    if description.failure:
        lines.append(description.failure)
    progress = description.progress
    if progress is None:
        lines.append("its progress is unknown: no worker of the control pool answers")
    else:
        lines += [describe_phase(progress), *describe_course(progress)]
    config = yaml.safe_dump(description.config.model_dump(mode="json"), sort_keys=False)
    return [*lines, "configuration:", *(f"  {line}" for line in config.splitlines())]
