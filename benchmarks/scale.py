"""Ten thousand episodes open at once on one machine: all end well, and in how much memory.

Every completion is held until all episodes are open, so each of them is in the middle of its life
then: a workflow in the server and in a worker's cache, and an activity that runs or waits.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import psutil

from benchmarks.figures import Amount, Count, Figure
from benchmarks.scripted.accounts import Accounts, accounts_of
from benchmarks.scripted.environment import LedgerOptions
from benchmarks.scripted.platform import ScriptedOptions
from benchmarks.scripted.running import Running, ledger_config, running
from benchmarks.scripted.server import Script
from loopwright.contracts.configs import IterationConfig, LoopConfig

NUM_LOOPS = 5
NUM_GROUPS, GROUP_SIZE = 200, 10
"""Of each loop."""
NUM_EPISODES = NUM_LOOPS * NUM_GROUPS * GROUP_SIZE
NUM_TURNS = 2
NUM_EPISODE_WORKERS = 2
SERVER_GIB, WORKERS_GIB = 1.5, 3.0
_GIB = 2**30
_POLL_SECONDS = 2.0


@dataclass
class Peaks:
    """Most memory that server and workers had at one time."""

    server: int = 0
    workers: int = 0
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    @asynccontextmanager
    async def watching(self, platform: Running) -> AsyncIterator[None]:
        """Look every now and then while the block runs."""
        self._task = asyncio.create_task(self._look(platform.processes()))
        try:
            yield
        finally:
            self._task.cancel()

    async def _look(self, processes: dict[str, psutil.Process]) -> None:
        while True:
            held = {name: process.memory_info().rss for name, process in processes.items()}
            workers = sum(size for name, size in held.items() if "-worker" in name)
            self.server = max(self.server, held["temporal"])
            self.workers = max(self.workers, workers)
            await asyncio.sleep(_POLL_SECONDS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the run came to."""

    num_open: int
    """Most episodes open at once."""
    open_seconds: float
    total_seconds: float
    accounts: Accounts
    num_runs: int
    """Episode workflows that came to their end."""
    num_calls: int
    """Completions asked for."""
    peaks: Peaks


def run() -> Iterator[Figure]:
    """Open all, let them go, and count."""
    found = asyncio.run(_run())
    accounts = found.accounts
    seconds = f"open after {found.open_seconds:.0f} s, ended after {found.total_seconds:.0f} s"
    yield Amount("episodes open at once", found.num_open, "", at_least=NUM_EPISODES, detail=seconds)
    yield Count("episodes without a recorded outcome", accounts.num_missing, NUM_EPISODES)
    yield Count("episodes with more than one", accounts.num_doubled, NUM_EPISODES)
    yield Count("episodes that failed", accounts.num_failed, NUM_EPISODES)
    yield Count("episodes that ran twice", found.num_runs - NUM_EPISODES, NUM_EPISODES)
    again = found.num_calls - NUM_EPISODES * NUM_TURNS
    yield Count("completions asked for more than once", again, NUM_EPISODES * NUM_TURNS)
    peaks = found.peaks
    yield Amount("memory of the Temporal server", peaks.server / _GIB, "GiB", at_most=SERVER_GIB)
    yield Amount("memory of all workers", peaks.workers / _GIB, "GiB", at_most=WORKERS_GIB)


async def _run() -> Outcome:
    options = ScriptedOptions(
        engines=tuple(f"engine-{i}" for i in range(NUM_LOOPS)),
        num_episode_workers=NUM_EPISODE_WORKERS,
        max_episodes=NUM_EPISODES // NUM_EPISODE_WORKERS,
        is_holding=True,
    )
    peaks, started = Peaks(), time.monotonic()
    async with running(options) as platform, peaks.watching(platform):
        handles = [
            await platform.loops.start(_config(engine), loop_id=engine)
            for engine in options.engines
        ]
        num_open = await _until_open(platform)
        open_seconds = time.monotonic() - started
        await platform.script(Script(is_holding=False))
        await asyncio.gather(*(handle.result() for handle in handles))
        return Outcome(
            num_open=num_open,
            open_seconds=open_seconds,
            total_seconds=time.monotonic() - started,
            accounts=accounts_of(platform.store(), options.engines, num_asked=NUM_EPISODES),
            num_runs=await platform.num_episodes("Completed"),
            num_calls=await platform.num_calls(),
            peaks=peaks,
        )


def _config(engine: str) -> LoopConfig:
    options = LedgerOptions(num_turns=NUM_TURNS, num_tasks=NUM_GROUPS, has_signal=False)
    return ledger_config(options, engine=engine).model_copy(
        update={
            "iteration": IterationConfig(num_tasks=NUM_GROUPS, group_size=GROUP_SIZE),
            "profile": "many_open",
        }
    )


async def _until_open(platform: Running) -> int:
    """Wait until every episode is open; give how many are."""
    while (found := await platform.num_episodes()) < NUM_EPISODES:
        await asyncio.sleep(_POLL_SECONDS)
    return found
