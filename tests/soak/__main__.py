"""Loops under injected faults: ``python -m tests.soak``.

First every child of the real platform is killed in turn, then a platform with a scripted engine
bears kills at random, a store that fails and a network that is cut. Exit status 1 tells that
something was lost.
"""

import argparse
import signal
import sys

from tests.soak import each_child, random_faults
from tests.soak.plan import FULL, SHORT

ROUNDS = 5
PARTS = ("children", "faults")


def main() -> int:
    """Run the soak, and give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--short", action="store_true", help="kill each child once; few episodes")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    asked = parser.parse_args()
    # So that a soak that is ended from outside stops its platform, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    is_well = True
    if asked.only in (None, "children"):
        is_well &= each_child.run(1 if asked.short else ROUNDS)
    if asked.only in (None, "faults"):
        is_well &= random_faults.run(SHORT if asked.short else FULL, seed=asked.seed)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
