"""What overlapping iterations save: a loop at staleness 1 against the same one at staleness 0.

Engine and trainer only wait, and equally long, so nothing competes for the processor and each loop
takes as long as its order of things makes it. Where both parts take the same time, the best that
``K`` iterations can come to is ``(K + 1) / 2K``: the first has nothing to collect beside.
"""

import asyncio
import time
from collections.abc import Iterator

from benchmarks.figures import Amount, Count, Figure, Ratio
from benchmarks.scripted.environment import LedgerOptions
from benchmarks.scripted.platform import ScriptedOptions
from benchmarks.scripted.running import Running, ledger_config, running
from loopwright.contracts.configs import EpisodeConfig, IterationConfig, LoopConfig
from loopwright.contracts.iterations import LoopResult

NUM_ITERATIONS = 10
NUM_GROUPS, GROUP_SIZE = 4, 4
NUM_TURNS = 8
TURN_SECONDS = 1.5
"""What a completion takes; all episodes of an iteration run at once."""
TRAIN_SECONDS = NUM_TURNS * TURN_SECONDS
NUM_EPISODES = NUM_ITERATIONS * NUM_GROUPS * GROUP_SIZE
AT_MOST = 0.6


def run() -> Iterator[Figure]:
    """Run one loop after the other on one platform."""
    (sync_seconds, sync), (overlapping_seconds, overlapping) = asyncio.run(_measure())
    yield Ratio(
        "wall time of a loop at staleness 1 / at staleness 0",
        overlapping_seconds,
        sync_seconds,
        at_most=AT_MOST,
    )
    best = (NUM_ITERATIONS + 1) / (2 * NUM_ITERATIONS)
    detail = f"the least for {NUM_ITERATIONS} iterations is {best:.2f}x"
    least_seconds = NUM_ITERATIONS * 2 * TRAIN_SECONDS
    yield Amount("  of that at staleness 0", sync_seconds, "s", detail=f"waits: {least_seconds} s")
    yield Amount("  of that at staleness 1", overlapping_seconds, "s", detail=detail)
    for name, result in (("0", sync), ("1", overlapping)):
        without = NUM_ITERATIONS - _num_trained(result)
        yield Count(f"iterations at staleness {name} that did not learn", without, NUM_ITERATIONS)
        lost = NUM_EPISODES - result.num_episodes + result.num_lost
        yield Count(f"episodes at staleness {name} that were lost", lost, NUM_EPISODES)
    too_old = sum(each.num_too_old for each in overlapping.results)
    yield Count("groups that were too old to learn from", too_old, NUM_ITERATIONS * NUM_GROUPS)


async def _measure() -> tuple[tuple[float, LoopResult], tuple[float, LoopResult]]:
    options = ScriptedOptions(latency_seconds=TURN_SECONDS, train_seconds=TRAIN_SECONDS)
    async with running(options) as platform:
        await _time(platform, _config(max_staleness=0, num_iterations=1), "warm-up")
        sync = await _time(platform, _config(max_staleness=0), "sync")
        return sync, await _time(platform, _config(max_staleness=1), "overlapping")


async def _time(platform: Running, config: LoopConfig, loop_id: str) -> tuple[float, LoopResult]:
    """Give the wall seconds of a loop, and how it ended."""
    started = time.monotonic()
    handle = await platform.loops.start(config, loop_id=loop_id)
    result = await handle.result()
    return time.monotonic() - started, result


def _config(*, max_staleness: int, num_iterations: int = NUM_ITERATIONS) -> LoopConfig:
    options = LedgerOptions(num_turns=NUM_TURNS)
    return ledger_config(options).model_copy(
        update={
            "iteration": IterationConfig(
                num_tasks=NUM_GROUPS, group_size=GROUP_SIZE, max_staleness=max_staleness
            ),
            "episode": EpisodeConfig(max_turns=NUM_TURNS, max_tokens=1000),
            "num_iterations": num_iterations,
        }
    )


def _num_trained(result: LoopResult) -> int:
    return sum(each.outcome == "trained" for each in result.results)
