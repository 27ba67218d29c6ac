"""Which commands there are."""

import sys
from typing import Annotated

import typer

import loopwright
from loopwright.cli import (
    cancel,
    config_check,
    demo,
    describe,
    doctor,
    down,
    list_loops,
    pause,
    policy_build,
    report,
    requeue,
    resume,
    sandbox,
    schedule,
    set_loop,
    start,
    status,
    stop,
    up,
    watch,
    worker,
)
from loopwright.cli.errors import BAD_INPUT, INTERRUPTED

app = typer.Typer(
    name="loopwright",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"loopwright {loopwright.__version__}")
        raise typer.Exit


@app.callback()
def root(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Say which version this is."
        ),
    ] = False,
) -> None:
    """Post-train language models as agents, in durable loops."""


app.command("demo")(demo.demo)
app.command("up")(up.up)
app.command("down")(down.down)
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.command("start")(start.start)
app.command("watch")(watch.watch)
app.command("list")(list_loops.list_loops)
app.command("describe")(describe.describe)
app.command("pause")(pause.pause)
app.command("resume")(resume.resume)
app.command("stop")(stop.stop)
app.command("set")(set_loop.set_loop)
app.command("cancel")(cancel.cancel)
app.command("requeue")(requeue.requeue)
app.command("report")(report.report)
app.command("worker")(worker.worker)
app.add_typer(config_check.app, name="config")
app.add_typer(policy_build.app, name="policy")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(schedule.app, name="schedule")


def run() -> int:
    """Run the command that the words name, and give the exit status.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C.
    """
    try:
        status = app(standalone_mode=False)
    except typer.TyperException as error:
        print(_usage_error(error), file=sys.stderr)
        return BAD_INPUT
    if status == INTERRUPTED:  # what Typer makes of Ctrl-C
        raise KeyboardInterrupt
    return int(status or 0)


def _usage_error(error: typer.TyperException) -> str:
    """Say what is wrong with the words; those that name a group alone get its help."""
    if isinstance(error, typer.BadParameter) and error.__cause__ is not None:
        from pydantic import ValidationError

        from loopwright.contracts.base import refusals

        if isinstance(error.__cause__, ValidationError):
            error.message = "; ".join(refusals(error.__cause__))
    text = error.format_message()
    if text.startswith("Usage:"):
        return text
    return f"loopwright: {text.rstrip('.')}; --help shows what there is"
