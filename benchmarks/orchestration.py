"""What durability costs an episode, and whom it lets begin first."""

from collections.abc import Iterator

from benchmarks import dispatch_order, episode_cost, loop_cost
from benchmarks.figures import Figure


def run() -> Iterator[Figure]:
    """Measure cost, then order."""
    for part in (episode_cost, loop_cost, dispatch_order):
        yield from part.run()
