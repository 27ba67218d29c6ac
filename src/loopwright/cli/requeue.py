"""``loopwright requeue``: let another worker go on with an episode."""

import asyncio
from pathlib import Path

from loopwright.cli import options


def requeue(
    episode: options.Episode, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """Take an episode from its worker and queue it again.

    It goes on from its last committed turn; one that is being graded ends as it would.

    Example: loopwright requeue loop/first/iteration/000003/task/program_steps.t7/episode/2
    """
    asyncio.run(_requeue(episode, state=state, is_json=is_json))


async def _requeue(episode: str, *, state: Path, is_json: bool) -> None:
    from loopwright.cli.connection import connect
    from loopwright.cli.output import print_json, say
    from loopwright.sdk.episodes import loop_of

    loop_id = loop_of(episode)
    await (await (await connect(state)).loop(loop_id)).requeue_episode(episode)
    say(f"episode {episode} goes on from its last committed turn", is_json=is_json)
    if is_json:
        print_json({"loop_id": loop_id, "episode": episode})
