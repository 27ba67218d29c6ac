"""``loopwright schedule``: recurring iterations and evaluations of a loop."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from loopwright.cli import options
from loopwright.cli import schedule_options as own

if TYPE_CHECKING:
    from loopwright.contracts.schedules import Overlap, Work
    from loopwright.sdk import ScheduleHandle, Schedules

app = typer.Typer(no_args_is_help=True, help="Recurring iterations and evaluations.")


@app.callback()
def schedule() -> None:
    """Recurring iterations and evaluations of a loop."""


@app.command("create")
def create(
    name: own.Name,
    loop_id: options.Loop,
    every: own.Every = None,
    offset: own.Offset = 0,
    cron: own.Cron = None,
    calendar: own.Calendar = None,
    iterations: own.Iterations = None,
    evaluate: own.Evaluate = False,
    tasks: own.Tasks = None,
    samples: own.Samples = None,
    overlap: own.Overlap = "skip",
    catch_up: own.CatchUp = 3600,
    pause_on_failure: own.PauseOnFailure = True,
    jitter: own.Jitter = 0,
    time_zone: own.TimeZone = "UTC",
    is_paused: Annotated[bool, typer.Option("--paused", help="Let it wait for `resume`.")] = False,
    note: own.Note = None,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Make a schedule for a loop; it fires at all times that --every, --cron, --calendar give.

    Example: loopwright schedule create nightly first --cron "0 2 * * *" --iterations 2
    """
    from loopwright.contracts.schedules import CalendarTimes, ScheduleConfig, ScheduleTimes
    from loopwright.sdk.arguments import check_id, check_loop_id

    check_id("name of the schedule", name)
    check_loop_id(loop_id)
    if every is None and not cron and not calendar:
        raise typer.BadParameter("expected --every, --cron or --calendar; got none of them")
    if offset and offset >= (every or 0):
        raise typer.BadParameter("--offset: expected a time below that of --every")
    times = ScheduleTimes(
        every_seconds=every,
        offset_seconds=offset,
        cron=tuple(cron or ()),
        calendars=tuple(CalendarTimes(**own.fields_of_calendar(text)) for text in calendar or ()),
        time_zone=time_zone,
        jitter_seconds=jitter,
    )
    config = ScheduleConfig(
        loop_id=loop_id,
        work=_work(iterations, tasks, samples, is_evaluation=evaluate),
        times=times,
        overlap=cast("Overlap", overlap),
        catch_up_seconds=catch_up,
        pauses_on_failure=pause_on_failure,
    )

    async def make() -> None:
        schedules = await _schedules(state)
        made = await schedules.create(name, config, is_paused=is_paused, note=note)
        await _show(made, is_json=is_json)

    asyncio.run(make())


@app.command("list")
def list_schedules(
    loop_id: Annotated[
        str | None, typer.Option("--loop", metavar="LOOP", help="Those of one loop only.")
    ] = None,
    is_metrics: Annotated[
        bool, typer.Option("--metrics", help="Print counts as metrics for Prometheus.")
    ] = False,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """List schedules: times, next firing, what was skipped and missed, newest results.

    Example: loopwright schedule list --loop first
    """
    if is_metrics and is_json:
        raise typer.BadParameter("expected --metrics or --json, got both")

    async def tell() -> None:
        from loopwright.cli.output import print_json, say
        from loopwright.cli.schedule_metrics import metrics_of
        from loopwright.cli.schedule_words import describe_schedule

        schedules = await _schedules(state)
        found = await schedules.list_schedules(loop_id=loop_id, has_results=not is_metrics)
        if is_metrics:
            for line in metrics_of(found):
                say(line)
            return
        if is_json:
            print_json({"schedules": [each.model_dump(mode="json") for each in found]})
            return
        if not found:
            say("no schedules; `loopwright schedule create` makes one")
        for each in found:
            for line in describe_schedule(each, num_firings=3):
                say(line)

    asyncio.run(tell())


@app.command("describe")
def describe(
    name: own.Name, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """Show one schedule with its last ten firings.

    Example: loopwright schedule describe nightly
    """

    async def tell() -> None:
        await _show(await _find(name, state), is_json=is_json)

    asyncio.run(tell())


@app.command("pause")
def pause(
    name: own.Name,
    note: own.Note = None,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Let no more times count; what runs goes on.

    Example: loopwright schedule pause nightly --note "the engines are away"
    """
    note = "paused" if note is None else note

    async def do() -> None:
        await (await _find(name, state)).pause(note=note)
        _tell(f"schedule {name} is paused", name, is_json, is_paused=True, note=note)

    asyncio.run(do())


@app.command("resume")
def resume(
    name: own.Name,
    note: own.Note = None,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Let times count again; those of the pause are not made up for.

    Example: loopwright schedule resume nightly
    """
    note = "resumed" if note is None else note

    async def do() -> None:
        await (await _find(name, state)).resume(note=note)
        _tell(f"schedule {name} goes on", name, is_json, is_paused=False, note=note)

    asyncio.run(do())


@app.command("trigger")
def trigger(
    name: own.Name, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """Let it fire now, as its overlap policy allows, also while it is paused.

    Example: loopwright schedule trigger nightly
    """

    async def do() -> None:
        await (await _find(name, state)).trigger()
        said = f"schedule {name} was asked to fire; `loopwright schedule describe {name}` tells"
        _tell(f"{said} what came of it", name, is_json)

    asyncio.run(do())


@app.command("backfill")
def backfill(
    name: own.Name,
    start: Annotated[
        datetime, typer.Option("--from", metavar="TIME", parser=own.moment, help="First time.")
    ],
    end: Annotated[
        datetime, typer.Option("--to", metavar="TIME", parser=own.moment, help="Last time.")
    ],
    overlap: own.Overlap = "buffer_all",
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Let it fire now for each of its times of the past, both ends included.

    Example: loopwright schedule backfill nightly --from 2026-03-01 --to 2026-03-08
    """

    async def do() -> None:
        schedule = await _find(name, state)
        await schedule.backfill(start, end, overlap=cast("Overlap", overlap))
        said = f"schedule {name} fires for its times from {start} to {end}"
        _tell(said, name, is_json, start=start.isoformat(), end=end.isoformat(), overlap=overlap)

    asyncio.run(do())


@app.command("delete")
def delete(
    name: own.Name, state: options.State = options.STATE, is_json: options.Json = False
) -> None:
    """Delete a schedule; firings that have not ended go on.

    Example: loopwright schedule delete nightly
    """

    async def do() -> None:
        await (await _find(name, state)).delete()
        _tell(f"schedule {name} is deleted", name, is_json)

    asyncio.run(do())


def _work(
    iterations: int | None, tasks: int | None, samples: int | None, *, is_evaluation: bool
) -> "Work":
    from loopwright.contracts.schedules import ScheduledEvaluation, ScheduledIterations

    if is_evaluation and iterations is not None:
        raise typer.BadParameter("expected --iterations or --evaluate, got both")
    if is_evaluation:
        return ScheduledEvaluation(num_tasks=tasks, samples=samples)
    if tasks is not None or samples is not None:
        raise typer.BadParameter("--tasks and --samples are of an evaluation; add --evaluate")
    return ScheduledIterations(num_iterations=1 if iterations is None else iterations)


async def _schedules(state: Path) -> "Schedules":
    from loopwright.cli.connection import connect

    return (await connect(state)).schedules


async def _find(name: str, state: Path) -> "ScheduleHandle":
    return await (await _schedules(state)).schedule(name)


async def _show(handle: "ScheduleHandle", *, is_json: bool) -> None:
    from loopwright.cli.output import print_json, say
    from loopwright.cli.schedule_words import describe_schedule

    found = await handle.describe()
    if is_json:
        print_json(found)
        return
    for line in describe_schedule(found, num_firings=10):
        say(line)


def _tell(line: str, name: str, is_json: bool, **fields: Any) -> None:
    from loopwright.cli.output import print_json, say

    say(line, is_json=is_json)
    if is_json:
        print_json({"name": name, **fields})
