"""``loopwright cancel``: end one episode."""

import asyncio
from pathlib import Path

from loopwright.cli import options


def cancel(
    episode: options.Episode, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """End an episode under way without a reward; no other replaces it.

    Its group is scored with the others, if enough of them are left.

    Example: loopwright cancel loop/first/iteration/000003/task/program_steps.t7/episode/2
    """
    asyncio.run(_cancel(episode, state=state, is_json=is_json))


async def _cancel(episode: str, *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.output import print_json, say
    from loopwright.sdk.episodes import loop_of

    loop_id = loop_of(episode)
    await (await (await connect(state)).loop(loop_id)).cancel_episode(episode)
    say(f"episode {episode} ends as cancelled", is_json=is_json)
    if is_json:
        print_json({"loop_id": loop_id, "episode": episode})
