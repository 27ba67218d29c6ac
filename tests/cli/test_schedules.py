"""The commands of schedules, in this process but for one."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.client import Client

from loopwright.cli.app import run
from loopwright.cli.errors import reported_errors
from loopwright.sdk import LoopClient
from tests.cli.conftest import Command, Done
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config

CREATE = ("create", "seldom", "open", "--every", "30d")


def call(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["loopwright", "schedule", *words])
    try:
        with reported_errors():
            return run()
    except SystemExit as done:
        return int(done.code or 0)


@pytest.fixture
def schedule(
    temporal_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Give ``loopwright schedule`` without a process of its own."""
    address = temporal_client.service_client.config.target_host
    monkeypatch.setenv("LOOPWRIGHT_TEMPORAL_ADDRESS", address)
    monkeypatch.setenv("LOOPWRIGHT_TEMPORAL_NAMESPACE", temporal_client.namespace)

    async def command(*words: str) -> Done:
        capsys.readouterr()
        status = await asyncio.to_thread(call, words, monkeypatch)
        printed = capsys.readouterr()
        return Done(status, printed.out, printed.err)

    return command


@pytest.fixture
async def loop(temporal_client: Client) -> None:
    """Start a loop that idles."""
    await LoopClient(temporal_client).start(small_config(num_iterations=None), loop_id="open")


async def listed(schedule: Command, holds: Callable[[Any], bool]) -> Any:
    """Wait until ``list`` tells something of the one schedule; what never is times out."""
    while True:
        found = (await schedule("list", "--json")).json["schedules"]
        if found and holds(found[0]):
            return found[0]
        await asyncio.sleep(0.05)


@pytest.mark.usefixtures("loop")
async def test_trigger_while_a_firing_runs_is_listed_as_skipped(
    schedule: Command, fakes: FakeActivities
) -> None:
    go_on = fakes.hold.setdefault("trainer.train_step", asyncio.Event())
    assert (await schedule(*CREATE)).status == 0
    done = await schedule("trigger", "seldom", "--json")
    assert (done.status, done.json) == (0, {"name": "seldom"})
    await listed(schedule, lambda found: found["num_fired"] == 1)
    await schedule("trigger", "seldom")
    found = await listed(schedule, lambda found: found["num_skipped"] == 1)
    assert (found["num_fired"], len(found["running"])) == (1, 1)
    assert (
        "fired 1, skipped for overlap 1, missed the catch-up window 0"
        in (await schedule("list")).out
    )
    metric = 'loopwright_schedule_skipped_total{schedule="seldom",loop="open"} 1\n'
    assert metric in (await schedule("list", "--metrics")).out
    go_on.set()
    found = await listed(schedule, lambda found: found["firings"][-1]["result"])
    assert found["firings"][-1]["result"]["last_iteration"] == 1
    assert "completed: iterations up to 1" in (await schedule("list")).out


@pytest.mark.usefixtures("loop")
async def test_trigger_waits_where_the_policy_lets_one_wait(
    schedule: Command, fakes: FakeActivities
) -> None:
    go_on = fakes.hold.setdefault("trainer.train_step", asyncio.Event())
    await schedule(*CREATE, "--overlap", "buffer_one")
    await schedule("trigger", "seldom")
    await listed(schedule, lambda found: found["num_fired"] == 1)
    await schedule("trigger", "seldom")
    found = await listed(schedule, lambda found: found["num_waiting"] == 1)
    assert found["num_skipped"] == 0
    go_on.set()


@pytest.mark.usefixtures("loop")
async def test_created_schedule_is_told_as_it_was_asked_for(schedule: Command) -> None:
    words = (
        *("create", "all", "open", "--every", "1h30m", "--offset", "1m", "--cron", "0 2 * * *"),
        *("--calendar", "hour=4 day_of_month=1", "--evaluate", "--tasks", "3", "--samples", "2"),
        *("--overlap", "buffer_all", "--catch-up", "90s", "--go-on-after-failure"),
        *("--jitter", "30", "--time-zone", "Europe/Berlin", "--paused", "--note", "not yet"),
    )
    made = (await schedule(*words, "--json")).json
    assert made["work"] == {"kind": "evaluation", "num_tasks": 3, "samples": 2}
    assert made["times"] == [
        "every 1h30m, 1m later",
        "calendar hour=4 day_of_month=1",
        "cron 0 2 * * *",
    ]
    assert (made["time_zone"], made["jitter_seconds"]) == ("Europe/Berlin", 30)
    assert (made["overlap"], made["catch_up_seconds"]) == ("buffer_all", 90)
    assert not made["pauses_on_failure"]
    assert (made["is_paused"], made["note"]) == (True, "not yet")
    told = (await schedule("describe", "all")).out
    assert "all: evaluation of loop open" in told
    assert "next: none, it is paused\n  note: not yet" in told


@pytest.mark.usefixtures("loop")
async def test_pause_and_resume_leave_their_notes(schedule: Command) -> None:
    await schedule(*CREATE)
    for verb, is_paused in (("pause", True), ("resume", False)):
        done = await schedule(verb, "seldom", "--note", "engines", "--json")
        assert done.json == {"name": "seldom", "is_paused": is_paused, "note": "engines"}
        found = (await schedule("describe", "seldom", "--json")).json
        assert (found["is_paused"], found["note"]) == (is_paused, "engines")


@pytest.mark.usefixtures("loop")
async def test_backfill_fires_for_each_day_that_has_passed(schedule: Command) -> None:
    await schedule("create", "daily", "open", "--cron", "@daily")
    done = await schedule("backfill", "daily", "--from", "2026-03-01", "--to", "2026-03-02")
    assert done.status == 0, done.err
    found = await listed(schedule, lambda found: found["num_fired"] == 2)
    days = [each["scheduled_at"][:10] for each in found["firings"]]
    assert days == ["2026-03-01", "2026-03-02"]


@pytest.mark.usefixtures("loop")
async def test_deleted_schedule_is_unknown_and_near_ones_are_named(schedule: Command) -> None:
    await schedule(*CREATE)
    await listed(schedule, lambda found: found["name"] == "seldom")
    for verb in ("describe", "pause", "resume", "trigger", "delete"):
        done = await schedule(verb, "sledom")
        assert (done.status, done.out) == (2, "")
        assert "there is no schedule 'sledom'; did you mean seldom?" in done.err
    assert (await schedule("delete", "seldom", "--json")).json == {"name": "seldom"}
    assert "there is no schedule 'seldom'" in (await schedule("describe", "seldom")).err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("create", "a/b", "open", "--every", "1h"), "name of the schedule: expected up to 64"),
        (("create", "a", "o/p", "--every", "1h"), "loop id: expected up to 64"),
        (("create", "a", "open"), "expected --every, --cron or --calendar; got none"),
        (("create", "a", "open", "--every", "often"), "'--every': expected a time such as 90s"),
        (("create", "a", "open", "--every", "0"), "'--every': expected at least 1s"),
        (("create", "a", "open", "--every", "900d"), "'--every': expected at most 366d"),
        (("create", "a", "open", "--every", "1h", "--offset", "1h"), "--offset: expected a time"),
        (("create", "a", "open", "--cron", "0 25 * * *"), "'--cron': '0 25 * * *': "),
        (("create", "a", "open", "--calendar", "3"), "'--calendar': expected FIELD=VALUES"),
        (("create", "a", "open", "--calendar", "hour=25"), "'--calendar': hour"),
        (("create", "a", "open", "--calendar", "hours=2"), "'--calendar': hours: unknown"),
        ((*CREATE, "--iterations", "0"), "'--iterations': expected greater than or equal to 1"),
        ((*CREATE, "--iterations", "2", "--evaluate"), "--iterations or --evaluate, got both"),
        ((*CREATE, "--tasks", "3"), "are of an evaluation; add --evaluate"),
        ((*CREATE, "--evaluate", "--tasks", "1"), "'--tasks': expected "),
        ((*CREATE, "--evaluate", "--samples", "0"), "'--samples': expected "),
        ((*CREATE, "--overlap", "allow_all"), "'--overlap': expected one of skip, buffer_one"),
        ((*CREATE, "--catch-up", "5s"), "'--catch-up': expected at least 10s"),
        ((*CREATE, "--jitter", "-1"), "'--jitter': expected a time such as"),
        ((*CREATE, "--time-zone", "Europe/Berln"), "did you mean Europe/Berlin?"),
        (("backfill", "a", "--from", "now", "--to", "now"), "'--from': expected a time such as"),
        (("list", "--loop", "o/p"), "loop id: expected up to 64"),
        (("list", "--metrics", "--json"), "expected --metrics or --json, got both"),
        (CREATE, "there is no loop 'open'"),
    ],
)
async def test_bad_input_is_named(schedule: Command, words: tuple[str, ...], expected: str) -> None:
    done = await schedule(*words)
    assert (done.status, done.out) == (2, "")
    assert expected in done.err
    assert len(done.err.splitlines()) == 1


async def test_help_names_every_command_and_no_schedules_is_said(loopwright: Command) -> None:
    helped, listing = await asyncio.gather(
        loopwright("schedule", "--help"), loopwright("schedule", "list")
    )
    for verb in ("create", "list", "describe", "pause", "resume", "trigger", "backfill", "delete"):
        assert f"\n  {verb} " in helped.out
    assert listing.out == "no schedules; `loopwright schedule create` makes one\n"
