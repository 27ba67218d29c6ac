"""Episodes of a running loop, operated from outside."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from loopwright.contracts.failures import UserError
from loopwright.sdk import LoopClient, LoopHandle
from loopwright.sdk.server_errors import UnknownLoop
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config

GROUP = "loop/first/iteration/000001/task/program_steps.t0"
EPISODE = f"{GROUP}/episode/1"


@pytest.fixture
async def loop(loops: LoopClient, fakes: FakeActivities) -> AsyncIterator[LoopHandle]:
    """Give a loop of one iteration whose episodes stand in their first turn."""
    fakes.hold["episode.take_turns"] = asyncio.Event()
    handle = await loops.start(small_config(num_iterations=1), loop_id="first")
    while fakes.counts()["episode.take_turns"] < 12:
        await asyncio.sleep(0.02)
    yield handle
    fakes.hold["episode.take_turns"].set()
    await handle.result()


async def test_cancelled_episode_is_in_the_accounts_of_the_loop(
    loop: LoopHandle, fakes: FakeActivities
) -> None:
    await loop.cancel_episode(EPISODE)
    fakes.hold["episode.take_turns"].set()
    (row,) = (await loop.result()).results
    assert (row.num_episodes, row.num_cancelled, row.num_failed, row.num_lost) == (12, 1, 0, 0)


async def test_requeued_episode_is_missing_nowhere(loop: LoopHandle, fakes: FakeActivities) -> None:
    await loop.requeue_episode(EPISODE)
    fakes.hold["episode.take_turns"].set()
    (row,) = (await loop.result()).results
    assert (row.num_episodes, row.num_cancelled, row.num_admitted) == (12, 0, 3)


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        (f"{GROUP}/episode/9", "there is no such episode; its group has begun 4"),
        ("loop/first/iteration/000009/task/x/episode/0", "there is no such episode"),
        ("loop/other/iteration/000001/task/x/episode/0", "of loop/other, not of loop first"),
        ("first", "expected its workflow id, as loop/NAME/iteration/000001/task/T/episode/0"),
    ],
)
async def test_what_is_no_episode_of_the_loop_is_refused(
    loop: LoopHandle, episode: str, message: str
) -> None:
    for steer in (loop.cancel_episode, loop.requeue_episode):
        with pytest.raises(UserError, match=message):
            await steer(episode)


async def test_episode_of_a_group_that_has_ended_is_refused(
    loop: LoopHandle, fakes: FakeActivities
) -> None:
    fakes.hold["episode.take_turns"].set()
    await loop.result()
    with pytest.raises(UserError, match=f"episode {EPISODE}: it has ended"):
        await loop.cancel_episode(EPISODE)


async def test_loop_that_does_not_exist_has_no_episode(loops: LoopClient) -> None:
    with pytest.raises(UnknownLoop):
        await (await loops.loop("first")).cancel_episode(EPISODE)
