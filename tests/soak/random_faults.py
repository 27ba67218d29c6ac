"""Many short episodes under random faults, against the same ones undisturbed.

The engine is scripted: what it says depends on token ids and seed alone. So every reward must be
that of the undisturbed loop, whatever was killed, cut or refused meanwhile.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Amount, Count, Figure
from benchmarks.scripted.accounts import Accounts, accounts_of
from benchmarks.scripted.platform import calls_file, scripted_stack, with_environment
from loopwright.contracts.failures import LoopError
from loopwright.contracts.iterations import LoopResult
from loopwright.core.protocols import ObjectStore
from loopwright.embedded.plan import Plan
from loopwright.embedded.stack import Stack, stack_environment
from loopwright.sdk import LoopClient
from loopwright.sdk.connection import connect
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store
from tests.soak import leftovers
from tests.soak.killer import Killer
from tests.soak.network import Network, network
from tests.soak.plan import SoakPlan
from tests.soak.telling import say, show_logs
from tests.soak.turn_audit import TurnAudit, audit

CALM, STORMY = "calm", "stormy"
LONGEST_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Run:
    """What one loop came to."""

    result: LoopResult
    accounts: Accounts
    turns: TurnAudit
    seconds: float

    @property
    def rewards(self) -> dict[str, float | None]:
        """Reward of each episode, by its path below the loop."""
        return {
            path.removeprefix(f"{self.result.loop_id}/"): reward
            for path, reward in self.accounts.rewards.items()
        }


@dataclass(frozen=True, slots=True)
class Platform:
    """A running platform behind its network."""

    plan: SoakPlan
    state: Path
    stack: Stack
    net: Network
    store: ObjectStore
    loops: LoopClient

    async def run_loop(
        self, loop_id: str, *, during: AbstractAsyncContextManager[None] | None = None
    ) -> Run:
        """Run the loop to its end, and read all that is on record of it after ``during``."""
        num_before, started = len(self._calls()), time.monotonic()
        async with during or nullcontext(), asyncio.timeout(LONGEST_SECONDS):
            handle = await self.loops.start(self.plan.config(), loop_id=loop_id)
            result = await handle.result()
            seconds = time.monotonic() - started
        calls = self._calls()[num_before:]
        return Run(
            result=result,
            accounts=await asyncio.to_thread(
                accounts_of, self.store, [loop_id], num_asked=self.plan.num_episodes
            ),
            turns=await asyncio.to_thread(audit, self.store, loop_id, calls),
            seconds=seconds,
        )

    @asynccontextmanager
    async def storm(self, killer: Killer) -> AsyncIterator[None]:
        """Kill, refuse and cut while the block runs; then wait until every process is up again."""
        self.net.store.share = self.plan.store_faults
        tasks = [asyncio.create_task(killer.run()), asyncio.create_task(self._cut_once())]
        try:
            yield
        finally:
            self.net.store.share = 0.0
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self.stack.ensure_running)

    async def _cut_once(self) -> None:
        await asyncio.sleep(self.plan.seconds_before_cut)
        await self.net.cut(self.plan.cut_seconds)

    def _calls(self) -> list[str]:
        file = calls_file(self.state)
        return file.read_text().split() if file.exists() else []


def run(plan: SoakPlan, *, seed: int) -> bool:
    """Run the soak, print its table, and tell whether every line is as it must be."""
    with tempfile.TemporaryDirectory(prefix="loopwright-soak-") as folder:
        try:
            figures = asyncio.run(_soak(plan, seed, Path(folder)))
        except (AssertionError, LoopError, TimeoutError) as error:
            say(f"FAILED: {type(error).__name__}: {error}")
            show_logs(Path(folder) / "state" / "logs")
            return False
        is_well = all(figure.is_met for figure in figures)
        say("\n".join(map(str, figures)))
        if not is_well:
            show_logs(Path(folder) / "state" / "logs")
        return is_well


async def _soak(plan: SoakPlan, seed: int, folder: Path) -> list[Figure]:
    async with _platform(plan, seed, folder) as platform:
        calm = await platform.run_loop(CALM)
        say(f"{plan.num_episodes} episodes undisturbed: {_pace(calm)}")
        killer = Killer(platform.stack, seed, plan.seconds_between_kills)
        stormy = await platform.run_loop(STORMY, during=platform.storm(killer))
        say(f"the same under faults: {_pace(stormy)}")
        faults = list(_faults(platform, killer))
        # Or what is counted in the end could not be seen at all.
        assert leftovers.processes_of(platform.state)
        assert leftovers.groups_of(platform.state)
    return [*faults, *_episodes(calm, stormy), *_turns(plan, killer, stormy), *_left(folder)]


@asynccontextmanager
async def _platform(plan: SoakPlan, seed: int, folder: Path) -> AsyncIterator[Platform]:
    state = folder / "state"
    (folder / "tmp").mkdir()
    async with network(seed=seed) as net:

        def change(made: Plan) -> Plan:
            children = [
                with_environment(child, {"TMPDIR": str(folder / "tmp")}) for child in made.children
            ]
            return net.join(made.model_copy(update={"children": tuple(children)}))

        stack = scripted_stack(state, plan.options(), change=change)
        try:
            info = await asyncio.to_thread(stack.ensure_running)
            settings = Settings.from_environment(stack_environment(info))
            yield Platform(
                plan=plan,
                state=state,
                stack=stack,
                net=net,
                store=open_store(settings),
                loops=LoopClient(await connect(info.temporal_address, "default")),
            )
        finally:
            await asyncio.to_thread(stack.stop)


def _pace(run: Run) -> str:
    rollouts = sum(row.seconds["rollout"] for row in run.result.results)
    return f"{run.seconds:.0f} s, {rollouts:.0f} of them for episodes"


def _faults(platform: Platform, killer: Killer) -> Iterator[Figure]:
    kills, faults = killer.num_kills, platform.net.store.num_faults
    children = platform.stack.info()
    assert children is not None
    unharmed = children.children.keys() - kills.keys()
    detail = ", ".join(f"{name} {number}" for name, number in sorted(kills.items()))
    yield Amount("processes killed", kills.total(), "", detail=detail)
    yield Count("processes that were never killed", len(unharmed), len(children.children))
    detail = ", ".join(f"{kind} {number}" for kind, number in sorted(faults.items()))
    yield Amount("faults of the store", faults.total(), "", at_least=1, detail=detail)
    cuts = platform.net.num_cuts
    seconds = f"{platform.plan.cut_seconds:g} s"
    yield Amount("cuts of the network", cuts, "", at_least=1, detail=seconds)


def _episodes(calm: Run, stormy: Run) -> Iterator[Figure]:
    total, accounts = calm.accounts.num_asked, stormy.accounts
    yield Count("episodes without a recorded outcome", accounts.num_missing, total)
    yield Count("episodes with more than one", accounts.num_doubled, total)
    yield Count("episodes that failed", accounts.num_failed, total)
    yield Count("episodes that the loop calls lost", stormy.result.num_lost, total)
    expected, found = calm.rewards, stormy.rewards
    others = sum(found.get(path) != reward for path, reward in expected.items())
    values = len(set(expected.values()))
    detail = f"{values} different rewards"
    yield Count("rewards unlike those of the undisturbed run", others, total, detail)
    yield Amount("different rewards in the undisturbed run", values, "", at_least=2)
    pairs = zip(calm.result.results, stormy.result.results, strict=True)
    others = sum(one.metrics != other.metrics for one, other in pairs)
    yield Count("updates unlike those of the undisturbed run", others, len(calm.result.results))


def _turns(plan: SoakPlan, killer: Killer, stormy: Run) -> Iterator[Figure]:
    turns, num_disturbances = stormy.turns, killer.num_kills.total() + 1
    yield Count("turns committed twice", turns.num_committed_twice, turns.num_turns)
    yield Count("committed turns taken again", turns.num_taken_again, turns.num_turns)
    at_most = num_disturbances * plan.num_in_flight
    detail = f"of {turns.num_turns} turns; at most {plan.num_in_flight} are under way at a kill"
    yield Amount("turns in flight lost", turns.num_repeated, "", at_most=at_most, detail=detail)


def _left(folder: Path) -> Iterator[Figure]:
    state = folder / "state"
    for name, found in (
        ("processes", leftovers.processes_of(state)),
        ("mounts", leftovers.mounts_of(state)),
        ("control groups", leftovers.groups_of(state)),
        ("folders", leftovers.folders_of(state, folder / "tmp")),
    ):
        detail = ", ".join(map(str, list(found)[:5]))
        yield Amount(f"{name} left behind", len(found), "", at_most=0, detail=detail)
