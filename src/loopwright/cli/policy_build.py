"""``loopwright policy build``: make a base policy."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli import options

STEPS_PER_LINE = 25

app = typer.Typer(no_args_is_help=True, help="Policies.")


@app.callback()
def policy() -> None:
    """Policies."""


@app.command("build")
def build(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Directory to write.")],
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**31 - 1, help="Same seed, same policy.")
    ] = 0,
    is_json: options.Json = False,
) -> None:
    """Make a base policy from seeded demonstrations: a directory for `policy.model`.

    Example: loopwright policy build my-policy --seed 1
    """
    from loopwright.adapters.new_directory import new_directory
    from loopwright.cli.output import print_json, say

    def report(done: int, total: int, loss: float) -> None:
        if done % STEPS_PER_LINE == 0 or done == total:
            say(f"step {done} of {total}: loss {loss:.3f}", is_json=is_json)

    with new_directory(output) as unfinished:
        # torch takes seconds to load: a wrong output has been refused by now.
        from loopwright.learning.policy_build import build_policy

        summary = build_policy(unfinished, seed=seed, on_progress=report)
    say(f"wrote {output}: {summary.num_parameters} parameters", is_json=is_json)
    if is_json:
        print_json({"directory": str(output), **dataclasses.asdict(summary)})
