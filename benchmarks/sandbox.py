"""What jails and workspaces cost, against plain processes and other sandboxes of the same run."""

from collections.abc import Iterator

from benchmarks import latency, throughput, workspaces
from benchmarks.figures import Figure
from benchmarks.peers import run_folder


def run() -> Iterator[Figure]:
    """Measure latency, then workspaces, then throughput."""
    for part in (latency, workspaces, throughput):
        with run_folder() as folder:
            yield from part.measure(folder)
