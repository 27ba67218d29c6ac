"""``loopwright down``: stop the platform on this machine."""

from loopwright.cli import options


def down(state: options.State = options.STATE, is_json: options.Json = False) -> None:
    """Stop the platform in order: workers first, then the servers. Its data is kept.

    Does nothing when nothing runs.

    Example: loopwright down
    """
    from loopwright.cli.output import print_json, say
    from loopwright.embedded.stack import Stack

    was_running = Stack(state).stop(lambda line: say(line, is_json=is_json))
    if is_json:
        print_json({"was_running": was_running, "state_dir": str(state.resolve())})
    else:
        say("the platform is stopped" if was_running else f"no platform runs in {state}")
