"""``loopwright demo``: the main job, start to report, on this machine."""

from typing import Annotated

import typer

from loopwright.cli import options


def demo(
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations",
            min=1,
            max=1000,
            help="Iterations to run; by default until the target pass rate, 10 at most.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed.")] = 0,
    tasks: Annotated[
        int, typer.Option("--tasks", min=1, max=200, help="Tasks of an iteration.")
    ] = 24,
    group_size: Annotated[
        int, typer.Option("--group-size", min=2, max=64, help="Episodes of a task.")
    ] = 8,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew even if the last demo is unfinished.")
    ] = False,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="Leave the platform running at the end.")
    ] = False,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Start the platform, train the policy that ships with it, evaluate before and after, report.

    A demo that was interrupted goes on where it was. Everything is kept in the state folder.

    Example: loopwright demo --iterations 3
    """
    from loopwright.cli.demo_run import DemoRequest, run_demo

    request = DemoRequest(
        iterations=iterations,
        seed=seed,
        num_tasks=tasks,
        group_size=group_size,
        is_fresh=fresh,
        keep_running=keep_running,
        state=state,
        is_json=is_json,
    )
    run_demo(request)
