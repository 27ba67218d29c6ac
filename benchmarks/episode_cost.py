"""What orchestration costs an episode, in CPU time of server and worker and in state transitions.

The server is the platform's own with its own settings, the store is a dictionary, the engine a
function, and the episodes have no parent.
"""

import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from temporalio.client import Client, WorkflowHandle

from benchmarks.episode_worker import EAGER_QUEUE, HAND_WRITTEN_QUEUE
from benchmarks.figures import Amount, Figure, Ratio, Share
from benchmarks.hand_written import HAND_WRITTEN, play
from benchmarks.in_memory import (
    NUM_TURNS,
    base_checkpoint,
    episode_input,
    idle_jail,
    scripted_engine,
)
from benchmarks.scripted.environment import LedgerEnvironment
from benchmarks.scripted.platform import ScriptedOptions, python_path, scripted_stack
from benchmarks.timing import median_seconds
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.contracts import queues
from loopwright.contracts.episodes import EpisodeInput
from loopwright.contracts.ids import EPISODE
from loopwright.contracts.policies import CheckpointRef
from loopwright.embedded.options import default_model
from loopwright.embedded.plan import ChildSpec, Plan, ReadyFile
from loopwright.embedded.stack import StackInfo
from loopwright.embedded.state_folder import StateFolder
from loopwright.sdk.connection import connect
from loopwright.trajectories.rendering import Renderer

NUM_EPISODES = 64
"""Episodes of one measurement."""
AT_ONCE = 16
REPEATS = 3
_SETTLE_SECONDS = 0.5
"""What the server does after an episode's end belongs to the episode."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to run an episode."""

    workflow: str
    queue: str
    turns_per_activity: int


OURS = Shape(EPISODE, queues.EPISODE, NUM_TURNS)
OURS_BY_TURN = Shape(EPISODE, queues.EPISODE, 1)
THEIRS = Shape(HAND_WRITTEN, HAND_WRITTEN_QUEUE, NUM_TURNS)
THEIRS_BY_TURN = Shape(HAND_WRITTEN, HAND_WRITTEN_QUEUE, 1)
EAGER = Shape(HAND_WRITTEN, EAGER_QUEUE, NUM_TURNS)
EAGER_BY_TURN = Shape(HAND_WRITTEN, EAGER_QUEUE, 1)
SHAPES = {
    "ours": OURS,
    "ours by turn": OURS_BY_TURN,
    "theirs": THEIRS,
    "theirs by turn": THEIRS_BY_TURN,
    "eager": EAGER,
    "eager by turn": EAGER_BY_TURN,
}


@dataclass
class Measurement:
    """Runs episodes of each shape, and keeps what they came to."""

    client: Client
    processes: Sequence[psutil.Process]
    """Server and worker."""
    checkpoint: CheckpointRef
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Wall seconds of each measurement by shape."""
    transitions: dict[str, int] = field(default_factory=dict)
    """Most state transitions of an episode by shape."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def cpu_seconds(self, name: str, shape: Shape) -> float:
        """Run ``NUM_EPISODES`` and give the CPU seconds of one."""
        start, before = time.perf_counter(), self._cpu()
        handles = await self._run(shape)
        self.seconds.setdefault(name, []).append(time.perf_counter() - start)
        await asyncio.sleep(_SETTLE_SECONDS)
        spent = self._cpu() - before
        found = [await _transitions(handle) for handle in handles[:AT_ONCE]]
        self.transitions[name] = max(*found, self.transitions.get(name, 0))
        return spent / NUM_EPISODES

    async def _run(self, shape: Shape) -> list[WorkflowHandle[object, object]]:
        slots = asyncio.Semaphore(AT_ONCE)

        async def run() -> WorkflowHandle[object, object]:
            async with slots:
                number = next(self._numbers)
                handle: WorkflowHandle[object, object] = await self.client.start_workflow(
                    shape.workflow,
                    self._episode(number, shape),
                    id=f"bench/{number}",
                    task_queue=shape.queue,
                )
                await handle.result()
                return handle

        return list(await asyncio.gather(*(run() for _ in range(NUM_EPISODES))))

    def _episode(self, number: int, shape: Shape) -> EpisodeInput:
        return episode_input(
            self.checkpoint,
            str(number),
            turns_per_activity=shape.turns_per_activity,
            seed=number,
        )

    def _cpu(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self.processes)


def run() -> Iterator[Figure]:
    """Measure every shape in turns, then what a loop without durability takes."""
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        stack = scripted_stack(Path(folder) / "state", ScriptedOptions(), change=_server_and_worker)
        try:
            measured, medians = _measure(stack.ensure_running())
        finally:
            stack.stop()
    yield from _figures(measured, medians)
    yield from _price(measured, medians)


def _server_and_worker(plan: Plan) -> Plan:
    """Keep the Temporal server, and add the worker that has the rest in its memory."""
    folder = StateFolder(plan.connections.state_dir)
    server = next(child for child in plan.children if child.name == "temporal")
    like = next(child for child in plan.children if child.name == "episode-worker")
    worker = ChildSpec(
        name="worker",
        command=(sys.executable, "-m", "benchmarks.episode_worker"),
        environment={
            **like.environment,
            "PYTHONPATH": python_path(folder.root / "packages"),
            "LOOPWRIGHT_READY_FILE": str(folder.ready("worker")),
        },
        health=(ReadyFile(path=folder.ready("worker")),),
        needs=("temporal",),
        stage=1,
    )
    return plan.model_copy(update={"children": (server, worker)})


def _measure(info: StackInfo) -> tuple[Measurement, dict[str, float]]:
    pids = [child.pid for child in info.children.values()]
    with asyncio.Runner() as runner:
        measured = Measurement(
            client=runner.run(connect(info.temporal_address, "default")),
            processes=[psutil.Process(pid) for pid in pids],
            checkpoint=base_checkpoint(InMemoryObjectStore()),
        )

        def case(name: str, shape: Shape) -> Callable[[], float]:
            return lambda: runner.run(measured.cpu_seconds(name, shape))

        cases = {name: case(name, shape) for name, shape in SHAPES.items()}
        return measured, median_seconds(cases, repeats=REPEATS)


def _figures(measured: Measurement, medians: dict[str, float]) -> Iterator[Figure]:
    for suffix, words, most_ms, most_transitions in (
        ("", "all turns in one activity", 80, 12),
        (" by turn", "one turn an activity", 140, 24),
    ):
        ours, theirs = medians[f"ours{suffix}"], medians[f"theirs{suffix}"]
        yield Amount(f"CPU of an episode, {words}", ours * 1e3, "ms", at_most=most_ms)
        number = measured.transitions[f"ours{suffix}"]
        yield Amount(f"state transitions, {words}", number, "", at_most=most_transitions)
        yield Ratio(f"CPU, {words} / hand-written", ours, theirs, at_most=1.3)
        eager = medians[f"eager{suffix}"]
        yield Ratio(f"CPU, {words} / hand-written, eager", ours, eager)


def _price(measured: Measurement, medians: dict[str, float]) -> Iterator[Figure]:
    """Say what durability takes from a loop that has none."""
    wall, cpu = play_plainly(measured.checkpoint)
    ours = statistics.median(measured.seconds["ours"][1:]) / NUM_EPISODES
    yield Share("episodes a second / a loop without durability", 1 / ours, 1 / wall)
    yield Amount("CPU that durability adds to an episode", (medians["ours"] - cpu) * 1e3, "ms")


def play_plainly(checkpoint: CheckpointRef) -> tuple[float, float]:
    """Play episodes in this process; give wall and CPU seconds of one."""
    renderer, engine, jail = Renderer(default_model()), scripted_engine(), idle_jail()
    episodes = [
        episode_input(checkpoint, str(i), turns_per_activity=NUM_TURNS, seed=i)
        for i in range(NUM_EPISODES)
    ]
    environment = LedgerEnvironment(episodes[0].environment)

    async def play_all() -> None:
        slots = asyncio.Semaphore(AT_ONCE)

        async def play_one(episode: EpisodeInput) -> None:
            async with slots:
                await play(
                    episode, renderer=renderer, environment=environment, engine=engine, jail=jail
                )

        await asyncio.gather(*map(play_one, episodes))

    samples = []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(play_all())
        samples.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = (statistics.median(column) for column in zip(*samples, strict=True))
    return wall / NUM_EPISODES, cpu / NUM_EPISODES


async def _transitions(handle: WorkflowHandle[object, object]) -> int:
    description = await handle.describe()
    return description.raw_description.workflow_execution_info.state_transition_count
