"""Schedules, on the real server with fake activities; times count as on any clock."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleSpec,
)

from loopwright.contracts.failures import UserError
from loopwright.contracts.schedules import (
    CalendarTimes,
    Overlap,
    ScheduleConfig,
    ScheduledEvaluation,
    ScheduledIterations,
    ScheduleTimes,
)
from loopwright.sdk import LoopClient, LoopHandle, ScheduleDescription, ScheduleHandle
from loopwright.sdk.schedule_errors import ScheduleExists, UnknownSchedule
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config

SELDOM = ScheduleTimes(every_seconds=30 * 24 * 3600)
"""So that only what a test asks for fires."""


@pytest.fixture
async def loop(loops: LoopClient) -> LoopHandle:
    """Give a loop that idles."""
    return await loops.start(small_config(num_iterations=None), loop_id="open")


@pytest.fixture
def standstill(fakes: FakeActivities) -> asyncio.Event:
    """Let iterations stand still in their update; give what lets them go on."""
    return fakes.hold.setdefault("trainer.train_step", asyncio.Event())


def config(**changes: Any) -> ScheduleConfig:
    return ScheduleConfig(**{"loop_id": "open", "times": SELDOM, **changes})


async def until(
    schedule: ScheduleHandle, holds: Callable[[ScheduleDescription], bool]
) -> ScheduleDescription:
    """Wait until something is told of a schedule; what never is times out."""
    while not holds(found := await schedule.describe()):
        await asyncio.sleep(0.05)
    return found


def has_taken(num_calls: int, found: ScheduleDescription) -> bool:
    """Tell whether something has become of so many calls to fire."""
    return found.num_fired + found.num_skipped + found.num_waiting == num_calls


def ended(found: ScheduleDescription) -> bool:
    return bool(found.firings) and found.firings[-1].outcome != "running"


async def test_times_that_come_while_a_firing_runs_are_skipped_and_counted(
    loops: LoopClient, loop: LoopHandle, standstill: asyncio.Event
) -> None:
    often = ScheduleTimes(every_seconds=1)
    schedule = await loops.schedules.create("often", config(times=often))
    found = await until(schedule, lambda found: found.num_skipped >= 2)
    assert (found.num_fired, len(found.running)) == (1, 1)
    await schedule.pause()
    standstill.set()
    await until(schedule, ended)
    assert [row.index for row in await loop.iterations()] == [1]


async def test_iterations_of_a_schedule_have_neither_gaps_nor_doubles(
    loops: LoopClient, loop: LoopHandle
) -> None:
    often = ScheduleTimes(every_seconds=1)
    work = ScheduledIterations(num_iterations=2)
    schedule = await loops.schedules.create("often", config(times=often, work=work))
    await until(schedule, lambda found: found.num_fired >= 2)
    await schedule.pause()
    found = await until(schedule, lambda found: not found.running and ended(found))
    asked = [row.index for each in found.firings if each.result for row in each.result.iterations]
    assert asked == list(range(1, 2 * found.num_fired + 1))
    assert [row.index for row in await loop.iterations()] == asked


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize(
    ("overlap", "num_skipped", "num_waiting"),
    [("skip", 2, 0), ("buffer_one", 1, 1), ("buffer_all", 0, 2)],
)
async def test_call_to_fire_respects_the_overlap_policy(
    loops: LoopClient,
    standstill: asyncio.Event,
    overlap: Overlap,
    num_skipped: int,
    num_waiting: int,
) -> None:
    schedule = await loops.schedules.create("seldom", config(overlap=overlap))
    for number in (1, 2):
        await schedule.trigger()
        await until(schedule, partial(has_taken, number))
    await schedule.trigger()
    found = await until(schedule, partial(has_taken, 3))
    assert (found.num_fired, found.num_skipped, found.num_waiting) == (1, num_skipped, num_waiting)
    standstill.set()


async def test_firing_at_an_ended_loop_pauses_the_schedule_with_the_reason(
    loops: LoopClient, loop: LoopHandle
) -> None:
    schedule = await loops.schedules.create("seldom", config())
    await loop.stop()
    await loop.result()
    await schedule.trigger()
    found = await until(schedule, lambda found: found.is_paused and ended(found))
    assert "loop open has ended; start it anew, or delete the schedule" in (found.note or "")
    assert found.firings[-1].outcome == "failed"
    assert found.firings[-1].failure is not None
    assert found.firings[-1].failure.startswith("loop open has ended")


async def test_schedule_goes_on_after_a_failure_where_it_is_told_to(
    loops: LoopClient, loop: LoopHandle
) -> None:
    schedule = await loops.schedules.create("seldom", config(pauses_on_failure=False))
    await loop.stop()
    await loop.result()
    await schedule.trigger()
    assert not (await until(schedule, ended)).is_paused


@pytest.mark.usefixtures("loop")
async def test_scheduled_evaluation_tells_its_result(loops: LoopClient) -> None:
    work = ScheduledEvaluation(num_tasks=2, samples=2)
    schedule = await loops.schedules.create("weekly", config(work=work))
    await schedule.trigger()
    (firing,) = (await until(schedule, ended)).firings
    assert firing.outcome == "completed"
    assert firing.result is not None
    assert firing.result.evaluation is not None
    assert firing.result.evaluation.num_episodes == 4


async def test_times_of_the_past_are_made_up_for_both_ends_included(
    loops: LoopClient, loop: LoopHandle
) -> None:
    schedule = await loops.schedules.create("daily", config(times=ScheduleTimes(cron=("@daily",))))
    start = datetime(2026, 3, 1, tzinfo=UTC)
    await schedule.backfill(start, start + timedelta(days=2))
    found = await until(schedule, lambda found: found.num_fired == 3 and not found.running)
    days = [each.scheduled_at for each in found.firings]
    assert days == [start, start + timedelta(days=1), start + timedelta(days=2)]
    assert len(await loop.iterations()) == 3


@pytest.mark.usefixtures("loop")
async def test_paused_schedule_does_not_fire_until_it_is_resumed(loops: LoopClient) -> None:
    often = ScheduleTimes(every_seconds=1)
    schedule = await loops.schedules.create("often", config(times=often), is_paused=True)
    assert (await schedule.describe()).is_paused
    await schedule.resume(note="go on")
    found = await until(schedule, lambda found: found.num_fired > 0)
    assert (found.is_paused, found.note) == (False, "go on")
    await schedule.pause(note="enough")
    found = await schedule.describe()
    assert (found.is_paused, found.note) == (True, "enough")


@pytest.mark.usefixtures("loop")
async def test_description_tells_the_schedule_as_it_was_made(loops: LoopClient) -> None:
    times = ScheduleTimes(
        every_seconds=5400,
        offset_seconds=60,
        cron=("*/15 3 * * mon-fri",),
        calendars=(CalendarTimes(hour="4", day_of_month="1"),),
        time_zone="Europe/Berlin",
        jitter_seconds=30,
    )
    made = config(times=times, overlap="buffer_one", catch_up_seconds=90)
    found = await (await loops.schedules.create("all", made)).describe()
    assert found.times == (
        "every 1h30m, 1m later",
        "calendar hour=4 day_of_month=1",
        "cron */15 3 * * mon-fri",
    )
    assert (found.time_zone, found.jitter_seconds) == ("Europe/Berlin", 30)
    assert (found.overlap, found.catch_up_seconds) == ("buffer_one", 90)
    assert (found.loop_id, found.work, found.pauses_on_failure) == ("open", made.work, True)
    assert len(found.next_times) == 10


@pytest.mark.usefixtures("loop")
async def test_cron_line_fires_by_the_clock_of_its_time_zone(loops: LoopClient) -> None:
    times = ScheduleTimes(cron=("30 3 * * *",), time_zone="Asia/Tokyo")
    found = await (await loops.schedules.create("nightly", config(times=times))).describe()
    assert {(time.hour, time.minute) for time in found.next_times} == {(18, 30)}


async def test_schedules_are_listed_by_name_and_loop_without_those_of_others(
    loops: LoopClient, loop: LoopHandle, temporal_client: Client
) -> None:
    await loops.start(small_config(num_iterations=None), loop_id="other")
    await loops.schedules.create("b", config())
    await loops.schedules.create("a", config(loop_id="other"))
    await temporal_client.create_schedule(
        "foreign",
        Schedule(
            action=ScheduleActionStartWorkflow("Foreign", id="foreign", task_queue="nobody"),
            spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(timedelta(days=30))]),
        ),
    )
    while [each.name for each in await loops.schedules.list_schedules()] != ["a", "b"]:
        await asyncio.sleep(0.05)
    (found,) = await loops.schedules.list_schedules(loop_id="other")
    assert (found.name, found.loop_id) == ("a", "other")
    with pytest.raises(UnknownSchedule, match="schedule foreign is not one of loopwright's"):
        await loops.schedules.schedule("foreign")


@pytest.mark.usefixtures("loop")
async def test_deleted_schedule_is_gone_and_its_firing_goes_on(
    loops: LoopClient, temporal_client: Client, standstill: asyncio.Event
) -> None:
    schedule = await loops.schedules.create("seldom", config())
    await schedule.trigger()
    (firing,) = (await until(schedule, lambda found: bool(found.running))).running
    await schedule.delete()
    with pytest.raises(UnknownSchedule):
        await schedule.describe()
    standstill.set()
    result = await temporal_client.get_workflow_handle(firing).result()
    assert result["last_iteration"] == 1


@pytest.mark.usefixtures("loop")
async def test_name_of_a_schedule_that_exists_is_refused(loops: LoopClient) -> None:
    await loops.schedules.create("nightly", config())
    with pytest.raises(ScheduleExists, match="there is a schedule nightly already; delete it"):
        await loops.schedules.create("nightly", config())


@pytest.mark.usefixtures("loop")
async def test_unknown_schedule_is_refused_with_near_ones(loops: LoopClient) -> None:
    await loops.schedules.create("nightly", config())
    while not await loops.schedules.list_schedules():
        await asyncio.sleep(0.05)
    with pytest.raises(UnknownSchedule, match="no schedule 'nigthly'; did you mean nightly"):
        await loops.schedules.schedule("nigthly")


async def test_schedule_of_a_loop_that_is_none_is_refused(loops: LoopClient) -> None:
    with pytest.raises(UserError, match="there is no loop 'open'"):
        await loops.schedules.create("nightly", config())


async def test_schedule_of_an_ended_loop_is_refused(loops: LoopClient) -> None:
    await (await loops.start(small_config(num_iterations=0), loop_id="open")).result()
    with pytest.raises(UserError, match=r"loop open has ended \(completed\); start it anew"):
        await loops.schedules.create("nightly", config())


async def misuse(loops: LoopClient, call: str, value: Any) -> None:
    """Make one call with one wrong value."""
    schedule = ScheduleHandle(loops._client, "nightly")
    day = datetime(2026, 3, 1, tzinfo=UTC)
    zone = "time_zone"
    if call == "name of the schedule":
        await loops.schedules.create(value, config())
    elif call == zone:
        times = ScheduleTimes(every_seconds=1, time_zone=value)
        await loops.schedules.create("nightly", config(times=times))
    elif call == "config":
        await loops.schedules.create("nightly", value)
    elif call == "is_paused":
        await loops.schedules.create("nightly", config(), is_paused=value)
    elif call == "note":
        await schedule.pause(note=value)
    elif call == "start":
        await schedule.backfill(value, day)
    elif call == "end":
        await schedule.backfill(day, value)
    else:
        await schedule.backfill(day, day, overlap=value)


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("name of the schedule", ["", "a/b", 7, None, "a" * 65]),
        ("time_zone", ["Europe/Berln", "", "../etc"]),
        ("config", [{}, None, small_config()]),
        ("is_paused", ["yes", None]),
        ("note", [None, 1]),
        ("start", ["2026-03-01", None, datetime(2026, 3, 1)]),  # noqa: DTZ001
        ("start", [datetime.min.replace(tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC)]),
        ("end", [datetime(2026, 2, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC), "now"]),
        ("overlap", ["cancel_other", "allow_all", None]),
    ],
)
async def test_wrong_value_of_a_call_is_named_before_anything_is_sent(
    loops: LoopClient, call: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(UserError, match=rf"^{call}: expected .*got "):
            await misuse(loops, call, value)
