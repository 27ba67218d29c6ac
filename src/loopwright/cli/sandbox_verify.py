"""``loopwright sandbox verify``: the commands of an episode once more, and what came out again."""

from typing import TYPE_CHECKING, Annotated

import typer

from loopwright.cli import options
from loopwright.cli.errors import FAILED

if TYPE_CHECKING:
    from loopwright.cli.recorded_episode import RecordedEpisode
    from loopwright.core.protocols import ObjectStore
    from loopwright.trajectories.verification import CommandCheck
    from loopwright.workers.settings import Settings

_NOT_GRADED = (
    "not graded, by what is in the store: the episode still runs, ended without a grade, or is of "
    "an older version; verified are the turns that a new attempt would go on from"
)


def verify(
    episode: Annotated[
        str, typer.Argument(metavar="EPISODE", help="Id of the episode, as the Web UI shows it.")
    ],
    turn: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Only this turn, counted from 0, and no grading."),
    ] = None,
    repeat: Annotated[
        int, typer.Option(metavar="K", min=1, help="Run each command so many times.")
    ] = 1,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Run the commands of an episode's turns and grading again, and compare every digest.

    Each runs in a fresh jail of this machine, on the files it was given then. Exit 0 when ending,
    output and files are equal in every run, 1 when something differs or could not be run. The turns
    are those that were graded; before that, those that a new attempt would go on from. A program
    that reads the clock or entropy differs, unless its command was strict.

    Example: loopwright sandbox verify loop/demo/iteration/000001/task/TASK/episode/0
    """
    from loopwright.cli.connection import open_store, platform_settings
    from loopwright.cli.recorded_episode import find_episode, read_episode_name

    name = read_episode_name(episode)
    settings = platform_settings(state)
    # boto3 takes long to load: wrong words have been refused by now.
    from loopwright.cli.output import print_json, say
    from loopwright.cli.verification_table import summary

    store = open_store(settings)
    found = find_episode(store, name).only(turn)
    if not found.is_graded:
        say(_NOT_GRADED, is_json=is_json)
    checks = _check(found, settings, store, num_runs=repeat, is_json=is_json)
    for text in summary(checks, num_turns=len(found.turns), num_runs=repeat):
        say(text, is_json=is_json)
    if is_json:
        print_json(_record(found, checks, num_runs=repeat))
    raise typer.Exit(0 if _are_equal(checks) else FAILED)


def _check(
    found: "RecordedEpisode",
    settings: "Settings",
    store: "ObjectStore",
    *,
    num_runs: int,
    is_json: bool,
) -> "list[CommandCheck]":
    """Run what was recorded again, saying of each command what came out."""
    if not found.grading and not any(turn.commands for turn in found.turns):
        return []
    from loopwright.adapters.jail_roots import jails_of_commands
    from loopwright.adapters.local_jail import LocalJail
    from loopwright.adapters.root_store import RootStore
    from loopwright.cli.output import say
    from loopwright.cli.verification_table import HEADER, line
    from loopwright.trajectories.verification import check_commands
    from loopwright.workers.workspaces import open_workspaces

    workspaces = open_workspaces(settings, store)
    checks: list[CommandCheck] = []
    say(HEADER, is_json=is_json)
    with LocalJail(
        jails_of_commands(),
        num_slots=1,
        launcher=settings.sandbox_launcher,
        may_be_degraded=settings.sandbox_degraded,
        blobs=workspaces,
        roots=RootStore(settings.roots_dir),
    ) as jail:
        for check in check_commands(
            found.turns, grading=found.grading, jail=jail, blobs=workspaces, num_runs=num_runs
        ):
            checks.append(check)
            say(line(check), is_json=is_json)
    return checks


def _record(
    found: "RecordedEpisode", checks: "list[CommandCheck]", *, num_runs: int
) -> dict[str, object]:
    from loopwright.cli.verification_table import record

    return {
        "episode": found.prefix,
        "is_graded": found.is_graded,
        "num_turns": len(found.turns),
        "num_runs": num_runs,
        "is_equal": _are_equal(checks),
        "commands": [record(check) for check in checks],
    }


def _are_equal(checks: "list[CommandCheck]") -> bool:
    return all(check.is_equal for check in checks)
