"""``loopwright up``: start the platform on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli import options

Port = Annotated[int | None, typer.Option(metavar="PORT", help="Port; by default one is chosen.")]


def up(
    state: options.State = options.STATE,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay, and stop everything on Ctrl-C.")
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Model directory to serve; by default `pico`."),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(min=1, max=1024, metavar="N", help="Jails at once; by default the cores."),
    ] = None,
    temporal_port: Port = None,
    ui_port: Port = None,
    s3_port: Port = None,
    engine_port: Port = None,
    is_json: options.Json = False,
) -> None:
    """Start Temporal, S3, vLLM and a worker of each pool, and wait until all of it works.

    Does nothing when it works already. Data, logs and chosen ports are kept in the state folder.

    Example: loopwright up --slots 4
    """
    from loopwright.cli.output import print_json, say
    from loopwright.cli.stack_summary import as_json, summary
    from loopwright.embedded.ports import Ports
    from loopwright.embedded.stack import Stack, StackOptions

    ports = Ports(temporal=temporal_port, ui=ui_port, s3=s3_port, engine=engine_port)
    asked = {"model": model, "sandbox_slots": slots, "ports": ports}
    options_given = {name: value for name, value in asked.items() if value is not None}
    stack = Stack(state, options=StackOptions.model_validate(options_given))
    if foreground:
        stack.run_in_foreground(lambda line: say(line, is_json=is_json))
        return
    info = stack.ensure_running(lambda line: say(line, is_json=is_json))
    if is_json:
        print_json(as_json(info))
    else:
        say(summary(info))
