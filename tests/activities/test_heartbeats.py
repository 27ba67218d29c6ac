import asyncio
import dataclasses
import time
from datetime import timedelta

import pytest
from temporalio.testing import ActivityEnvironment

from loopwright.activities.heartbeats import heartbeating, heartbeating_thread


def environment(timeout: timedelta | None) -> tuple[ActivityEnvironment, list[int]]:
    beats: list[int] = []
    made = ActivityEnvironment()
    made.info = dataclasses.replace(made.info, heartbeat_timeout=timeout)
    made.on_heartbeat = lambda *_details: beats.append(1)
    return made, beats


async def until_beaten(beats: list[int]) -> None:
    async with heartbeating():
        while len(beats) < 3:
            await asyncio.sleep(0.01)


def until_beaten_in_thread(beats: list[int]) -> None:
    with heartbeating_thread():
        while len(beats) < 3:
            time.sleep(0.01)


async def short() -> None:
    async with heartbeating():
        await asyncio.sleep(0)


def short_in_thread() -> None:
    with heartbeating_thread():
        pass


async def test_activity_beats_for_as_long_as_it_works() -> None:
    made, beats = environment(timedelta(seconds=0.1))
    await made.run(until_beaten, beats)
    beats.clear()
    made.run(until_beaten_in_thread, beats)
    assert len(beats) == 3


@pytest.mark.parametrize("timeout", [timedelta(hours=1), None])
async def test_activity_that_is_done_before_the_first_beat_sends_none(
    timeout: timedelta | None,
) -> None:
    made, beats = environment(timeout)
    await made.run(short)
    made.run(short_in_thread)
    assert beats == []
