"""``loopwright status``: what runs where."""

import typer

from loopwright.cli import options


def status(state: options.State = options.STATE, is_json: options.Json = False) -> None:
    """Show each process of the platform on this machine; exit 1 unless all of them are healthy.

    Example: loopwright status --json
    """
    from loopwright.cli.output import print_json, say
    from loopwright.cli.stack_summary import as_json, summary
    from loopwright.embedded.stack import Stack

    info = Stack(state).info()
    if info is None:
        _say_not_running(state=str(state), is_json=is_json)
        raise typer.Exit(1)
    if is_json:
        print_json(as_json(info))
    else:
        say(summary(info))
    raise typer.Exit(0 if info.is_healthy else 1)


def _say_not_running(*, state: str, is_json: bool) -> None:
    from loopwright.cli.output import print_json, say

    say(f"not running: no platform runs in {state}; `loopwright up` starts one", is_json=is_json)
    if is_json:
        print_json({"state": "not_running", "is_healthy": False, "state_dir": state})
