"""The console script ``loopwright``: which commands there are."""

import os
import signal
import sys
from typing import Annotated

import typer

import loopwright
from loopwright.cli import (
    config_check,
    demo,
    describe,
    doctor,
    down,
    list_loops,
    pause,
    policy_build,
    report,
    resume,
    sandbox,
    start,
    status,
    stop,
    up,
    watch,
    worker,
)
from loopwright.cli.errors import INTERRUPTED, reported_errors

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
app.command("report")(report.report)
app.command("worker")(worker.worker)
app.add_typer(config_check.app, name="config")
app.add_typer(policy_build.app, name="policy")
app.add_typer(sandbox.app, name="sandbox")


def main() -> None:
    """Run the command line and end the process."""
    code: object = 0
    # Whoever ends a command otherwise than by Ctrl-C leaves nothing behind either.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with reported_errors():
            code = app(standalone_mode=False)
            if code == INTERRUPTED:  # what Typer makes of Ctrl-C
                raise KeyboardInterrupt
    except SystemExit as done:
        code = done.code
    sys.stdout.flush()
    sys.stderr.flush()
    # A native thread of the Temporal SDK can abort an interpreter that is shutting down.
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
