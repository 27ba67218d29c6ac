"""``python -m benchmarks [NAME]``: print figures, exit 1 where a target is missed."""

import importlib
import os
import signal
import sys
from collections.abc import Iterator

from benchmarks.figures import Figure

NAMES = ("sandbox", "reproducibility", "orchestration")
"""A module of this folder each; its ``run()`` gives the figures."""
BY_NAME_ONLY = ("episode_cost", "loop_cost", "dispatch_order", "overlap", "scale")
"""Parts of others, and what takes long."""


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all that do not take long, and give the exit status."""
    known = (*NAMES, *BY_NAME_ONLY)
    unknown = sorted(set(arguments) - set(known))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    # What a benchmark has started is stopped on the way out; SIGTERM must take that way, too.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    figures = [figure for name in arguments or NAMES for figure in run(name)]
    return 0 if all(figure.is_met for figure in figures) else 1


def run(name: str) -> Iterator[Figure]:
    """Run one benchmark and print each figure as soon as it is there."""
    print(f"{name}: ({_load()})", flush=True)
    module = importlib.import_module(f"benchmarks.{name}")
    for figure in module.run():
        print(f"  {figure}", flush=True)
        yield figure
    print(f"  ({_load()})", flush=True)


def _load() -> str:
    """Say how busy the host is: a busy one tells more of its neighbours than of us."""
    return f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} processors"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
