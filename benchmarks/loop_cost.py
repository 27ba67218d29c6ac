"""What an episode of a loop costs: with its group, iteration and loop, and with the S3 server."""

import asyncio
from collections.abc import Iterator, Mapping

import psutil

from benchmarks.figures import Amount, Figure
from benchmarks.in_memory import NUM_TURNS
from benchmarks.scripted.environment import LedgerOptions
from benchmarks.scripted.platform import ScriptedOptions
from benchmarks.scripted.running import Running, ledger_config, running
from loopwright.sdk import LoopHandle

NUM_GROUPS, GROUP_SIZE = 16, 8
_SETTLE_SECONDS = 1.0


def run() -> Iterator[Figure]:
    """Run one iteration to warm up, and measure the next."""
    spent = asyncio.run(_measure())
    num_episodes = NUM_GROUPS * GROUP_SIZE
    ms = {name: seconds / num_episodes * 1e3 for name, seconds in spent.items()}
    workers = sum(value for name, value in ms.items() if name.endswith("-worker"))
    detail = f"{NUM_GROUPS} groups of {GROUP_SIZE}, {NUM_TURNS} turns in one activity"
    yield Amount("CPU of an episode of a loop, server and workers", ms["temporal"] + workers, "ms")
    yield Amount("  of that the Temporal server", ms["temporal"], "ms", detail=detail)
    yield Amount("CPU of an episode at the S3 server, beside it", ms["s3"], "ms")


async def _measure() -> Mapping[str, float]:
    """Give the CPU seconds of an iteration by process."""
    options = LedgerOptions(num_turns=NUM_TURNS, has_signal=False)
    config = ledger_config(options).model_copy(update={"num_iterations": None})
    async with running(ScriptedOptions()) as platform:
        handle = await platform.loops.start(config, loop_id="cost")
        await _iterate(handle)
        before = _cpu_seconds(platform)
        await _iterate(handle)
        await asyncio.sleep(_SETTLE_SECONDS)
        after = _cpu_seconds(platform)
    return {name: after[name] - before[name] for name in before}


async def _iterate(handle: LoopHandle) -> None:
    number = await handle.run_iterations(1)
    async for progress in handle.watch():
        if progress.results and progress.results[-1].index >= number:
            return


def _cpu_seconds(platform: Running) -> dict[str, float]:
    return {name: _spent(process) for name, process in platform.processes().items()}


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
