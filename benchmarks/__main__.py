"""``python -m benchmarks [NAME]``: print figures, exit 1 where a target is missed."""

import importlib
import sys
from collections.abc import Iterator

from benchmarks.figures import Figure

NAMES = ("sandbox", "reproducibility")
"""A module of this folder each; its ``run()`` gives the figures."""


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all, and give the exit status."""
    unknown = sorted(set(arguments) - set(NAMES))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    figures = [figure for name in arguments or NAMES for figure in run(name)]
    return 0 if all(figure.is_met for figure in figures) else 1


def run(name: str) -> Iterator[Figure]:
    """Run one benchmark and print each figure as soon as it is there."""
    print(f"{name}:", flush=True)
    module = importlib.import_module(f"benchmarks.{name}")
    for figure in module.run():
        print(f"  {figure}", flush=True)
        yield figure


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
