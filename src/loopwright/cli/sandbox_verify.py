"""``loopwright sandbox verify``: the commands of an episode once more, and what came out again."""

from typing import TYPE_CHECKING, Annotated

import typer

from loopwright.cli import options
from loopwright.cli.errors import FAILED

if TYPE_CHECKING:
    from loopwright.trajectories.verification import CommandCheck


def verify(
    episode: Annotated[
        str, typer.Argument(metavar="EPISODE", help="Id of the episode, as the Web UI shows it.")
    ],
    turn: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Only this turn, counted from 0.")
    ] = None,
    repeat: Annotated[
        int, typer.Option(metavar="K", min=1, help="Run each command so many times.")
    ] = 1,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Run the commands that an episode's turns recorded again, and compare every digest.

    Each runs in a fresh jail of this machine, on the files it was given then. Exit 0 when ending,
    output and files are equal in every run, 1 when something differs or could not be run. The
    commands of grading are not recorded. A program that reads the clock or entropy differs, unless
    its command was strict.

    Example: loopwright sandbox verify loop/demo/iteration/000001/task/TASK/episode/0
    """
    from loopwright.cli.connection import platform_settings
    from loopwright.cli.recorded_episode import find_episode, read_episode_name

    name = read_episode_name(episode)
    settings = platform_settings(state)
    # boto3 takes long to load: wrong words have been refused by now.
    from loopwright.adapters.jail_roots import jails_of_commands
    from loopwright.adapters.local_jail import LocalJail
    from loopwright.adapters.root_store import RootStore
    from loopwright.cli.output import print_json, say
    from loopwright.cli.verification_table import HEADER, line, record, summary
    from loopwright.trajectories.verification import check_commands
    from loopwright.workers.stores import open_store
    from loopwright.workers.workspaces import open_workspaces

    store = open_store(settings)
    found = find_episode(store, name)
    turns = found.only(turn)
    workspaces = open_workspaces(settings, store)
    checks: list[CommandCheck] = []
    if any(each.commands for each in turns):
        say(HEADER, is_json=is_json)
        with LocalJail(
            jails_of_commands(),
            num_slots=1,
            launcher=settings.sandbox_launcher,
            may_be_degraded=settings.sandbox_degraded,
            blobs=workspaces,
            roots=RootStore(settings.roots_dir),
        ) as jail:
            for check in check_commands(turns, jail=jail, blobs=workspaces, num_runs=repeat):
                checks.append(check)
                say(line(check), is_json=is_json)
    for text in summary(checks, num_turns=len(turns), num_runs=repeat):
        say(text, is_json=is_json)
    is_equal = all(check.is_equal for check in checks)
    if is_json:
        print_json(
            {
                "episode": found.prefix,
                "num_turns": len(turns),
                "num_runs": repeat,
                "is_equal": is_equal,
                "commands": [record(check) for check in checks],
            }
        )
    raise typer.Exit(0 if is_equal else FAILED)
