"""How many Pythons a second come out of jails, however many callers wait for one."""

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.figures import Figure, Share
from benchmarks.latency import COLD_PYTHON, WARM_PYTHON, run_jailed
from benchmarks.peers import find_bubblewrap, plain_nsjail, run_plain
from benchmarks.timing import per_second
from loopwright.adapters.local_jail import LocalJail

CALLERS = (4, 32, 256)
FEW = CALLERS[0]
NUM_RUNS = 64
"""Runs of one measurement beyond the first of each caller."""
ROUNDS = 3
COLD_SHARE = 0.5
WARM_SHARE = 0.65

Case = tuple[Callable[[], None], int]
"""What is run, and how many callers."""


def measure(folder: Path) -> Iterator[Figure]:
    """Measure each case in turn, and tell its share of plain processes."""
    bubblewrap = find_bubblewrap()
    with ExitStack() as stack:
        nsjail = stack.enter_context(plain_nsjail(folder))
        jail = stack.enter_context(LocalJail(folder / "jails", num_slots=os.cpu_count() or 1))
        peers: dict[str, Case] = {
            "Python, plain nsjail, 4 callers": (lambda: nsjail(COLD_PYTHON), FEW)
        }
        if not isinstance(bubblewrap, str):
            words = (*bubblewrap, *COLD_PYTHON)
            peers[f"Python, bubblewrap, {FEW} callers"] = (lambda: run_plain(words), FEW)
        cold = {
            f"Python, jails, {callers} callers": (lambda: run_jailed(jail, COLD_PYTHON), callers)
            for callers in CALLERS
        }
        warm = {
            f"Python started before, jails, {n} callers": (lambda: run_jailed(jail, WARM_PYTHON), n)
            for n in CALLERS
        }
        plain: dict[str, Case] = {"plain": (lambda: run_plain(COLD_PYTHON), FEW)}
        rates = _rates(plain | cold | warm | peers)
    for names, at_least in ((cold, COLD_SHARE), (warm, WARM_SHARE), (peers, None)):
        for name in names:
            yield Share(f"{name} / plain", rates[name], rates["plain"], at_least)


def _rates(cases: dict[str, Case]) -> dict[str, float]:
    """Give the median rate of each case, all measured in turns."""
    rates: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, (call, callers) in cases.items():
            rates[name].append(per_second(call, callers=callers, num_runs=NUM_RUNS))
    return {name: statistics.median(found) for name, found in rates.items()}
