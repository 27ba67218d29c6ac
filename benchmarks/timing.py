"""Times several things in turns, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

Case = Callable[[], float]
"""Does one thing once and gives the seconds that it took; what it prepares does not count."""


def median_seconds(
    cases: Mapping[str, Case], *, repeats: int, pause_seconds: float = 0.0
) -> dict[str, float]:
    """Run each case in turn, ``repeats`` times, and give the medians.

    One turn before the first measurement fills the caches. ``pause_seconds`` go by before each run.
    """
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(repeats + 1):
        for name, case in cases.items():
            time.sleep(pause_seconds)
            taken = case()
            if turn:
                samples[name].append(taken)
    return {name: statistics.median(taken) for name, taken in samples.items()}


def timed(call: Callable[[], object]) -> Case:
    """Make a case of a call that needs no preparation."""
    return lambda: seconds_of(call)


def seconds_of(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def per_second(call: Callable[[], object], *, callers: int, num_runs: int) -> float:
    """Give the rate at which so many callers at once are served.

    There are ``num_runs`` more runs than callers, so that all callers wait most of the time.
    """
    total = callers + num_runs
    with ThreadPoolExecutor(callers) as threads:
        start = time.perf_counter()
        for done in [threads.submit(call) for _ in range(total)]:
            done.result()
        return total / (time.perf_counter() - start)
