"""``python -m benchmarks [NAME]``: print ratios, exit 1 where a target is missed."""

import importlib
import sys

from benchmarks.ratios import Ratio

NAMES = ("sandbox", "workspaces")
"""A module of this folder each; its ``run()`` gives the ratios."""


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all, and give the exit status."""
    unknown = sorted(set(arguments) - set(NAMES))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    ratios = [ratio for name in arguments or NAMES for ratio in run(name)]
    return 0 if all(ratio.is_met for ratio in ratios) else 1


def run(name: str) -> list[Ratio]:
    """Run one benchmark and print its ratios."""
    print(f"{name}:", flush=True)
    ratios: list[Ratio] = importlib.import_module(f"benchmarks.{name}").run()
    for ratio in ratios:
        print(f"  {ratio}", flush=True)
    return ratios


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
