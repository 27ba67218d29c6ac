"""``loopwright doctor``: what this machine lacks."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli import options


def doctor(
    state: options.State = options.STATE,
    model: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Model directory to serve; by default `pico`."),
    ] = None,
    is_json: options.Json = False,
) -> None:
    """Check everything that the platform needs of this machine; exit 1 if something is missing.

    Nothing is started or changed.

    Example: loopwright doctor
    """
    from loopwright.cli.output import print_json, say
    from loopwright.embedded.options import default_model
    from loopwright.embedded.preflight import check_machine

    checks = check_machine(state.resolve(), model or default_model())
    is_ready = all(check.is_ok for check in checks if check.is_required)
    for check in checks:
        mark = "ok" if check.is_ok else "MISSING" if check.is_required else "optional"
        say(f"{mark:8}  {check.name}: {check.detail}", is_json=is_json)
        if not check.is_ok and check.advice:
            say(f"{'':8}  {check.advice}", is_json=is_json)
    if is_json:
        print_json({"is_ready": is_ready, "checks": [asdict(check) for check in checks]})
    raise typer.Exit(0 if is_ready else 1)
