"""In which order waiting episodes begin: evaluations first, and loops by their weights.

Completions are held until everything waits, so the order is the server's own and not that of
arrival. What began when is read from the histories.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from benchmarks.figures import Amount, Count, Figure
from benchmarks.scripted.environment import LedgerOptions
from benchmarks.scripted.platform import ScriptedOptions
from benchmarks.scripted.running import Running, ledger_config, running
from benchmarks.scripted.server import Script
from loopwright.contracts.configs import EvaluationConfig, IterationConfig, LoopConfig

SLOTS = 8
"""Episode activities at once: few, so that nearly all wait."""
GROUP_SIZE = 8
NUM_TRAINING_GROUPS = 125
EVALUATION = EvaluationConfig(num_tasks=16, samples=2, at_start=True, at_end=False)
NUM_EVALUATED = EVALUATION.num_tasks * EVALUATION.samples
NUM_WEIGHED_GROUPS = 50
WEIGHTS = (3.0, 1.0)
NUM_COMPARED = 200
"""Episodes whose loop is counted: as long as both loops have many that wait."""
_OPTIONS = LedgerOptions(num_turns=1, has_signal=False)
_ENGINES = ("first", "second")
_POLL_SECONDS = 0.5
_AT_ONCE = 16
_SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
_STARTED = EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED


@dataclass(frozen=True, slots=True)
class Beginning:
    """When a worker took an episode's first activity."""

    loop_id: str
    started_at: datetime | None
    """None where it still waits."""

    def began_before(self, at: datetime) -> bool:
        """Tell whether it had been taken by then."""
        return self.started_at is not None and self.started_at < at


def run() -> Iterator[Figure]:
    """Fill the queue and see who is served."""
    overtaken = asyncio.run(_overtaken_evaluations())
    num_waiting = NUM_TRAINING_GROUPS * GROUP_SIZE
    yield Count(
        "training episodes begun before evaluations that came later", overtaken, num_waiting
    )
    heavy, light = asyncio.run(_shares())
    off_percent = abs(heavy / max(light, 1) / (WEIGHTS[0] / WEIGHTS[1]) - 1) * 100
    yield Amount(
        "deviation of two loops from their weights, 3 to 1",
        off_percent,
        "%",
        at_most=10,
        detail=f"{heavy} and {light} episodes begun",
    )


async def _overtaken_evaluations() -> int:
    """Count training episodes that began while an evaluation episode waited."""
    training = _training("first", NUM_TRAINING_GROUPS)
    evaluation = ledger_config(_OPTIONS, engine="second").model_copy(
        update={"num_iterations": 0, "evaluation": EVALUATION}
    )
    async with running(_platform()) as platform:
        await platform.loops.start(training, loop_id="training")
        await _until_waiting(platform, NUM_TRAINING_GROUPS * GROUP_SIZE)
        handle = await platform.loops.start(evaluation, loop_id="evaluation")
        await _until_waiting(platform, NUM_TRAINING_GROUPS * GROUP_SIZE + NUM_EVALUATED)
        released_at = datetime.now(UTC)
        await platform.script(Script(is_holding=False))
        await handle.result()
        found = await _beginnings(platform.client)
    return count_overtaken(found, since=released_at)


def count_overtaken(found: Sequence[Beginning], *, since: datetime) -> int:
    """Count training episodes begun since then, before the last evaluation episode began."""
    evaluated = [each for each in found if each.loop_id == "evaluation"]
    last = max(each.started_at or datetime.max.replace(tzinfo=UTC) for each in evaluated)
    return sum(
        each.began_before(last) and not each.began_before(since)
        for each in found
        if each.loop_id == "training"
    )


async def _shares() -> tuple[int, int]:
    """Count the episodes of each loop among the first that began once both waited."""
    names = ("heavy", "light")
    async with running(_platform()) as platform:
        for name, engine, weight in zip(names, _ENGINES, WEIGHTS, strict=True):
            config = _training(engine, NUM_WEIGHED_GROUPS)
            weighed = config.model_copy(update={"fairness_weight": weight})
            await platform.loops.start(weighed, loop_id=name)
        await _until_waiting(platform, 2 * NUM_WEIGHED_GROUPS * GROUP_SIZE)
        released_at = datetime.now(UTC)
        await platform.script(Script(is_holding=False))
        while await platform.num_episodes("Completed") < NUM_COMPARED + SLOTS:
            await asyncio.sleep(_POLL_SECONDS)
        found = await _beginnings(platform.client)
    first = first_begun(found, since=released_at)[:NUM_COMPARED]
    heavy, light = (sum(each.loop_id == name for each in first) for name in names)
    return heavy, light


def first_begun(found: Sequence[Beginning], *, since: datetime) -> list[Beginning]:
    """Give those that began since then, in the order in which they did."""
    begun = [(each.started_at, each) for each in found if each.started_at is not None]
    return [each for at, each in sorted(begun, key=lambda pair: pair[0]) if at >= since]


def _platform() -> ScriptedOptions:
    return ScriptedOptions(engines=_ENGINES, max_episodes=SLOTS, is_holding=True)


def _training(engine: str, num_groups: int) -> LoopConfig:
    iteration = IterationConfig(num_tasks=num_groups, group_size=GROUP_SIZE)
    return ledger_config(_OPTIONS, engine=engine).model_copy(update={"iteration": iteration})


async def _until_waiting(platform: Running, number: int) -> None:
    """Wait until so many episodes are open and all that no slot has wait for one."""
    while await platform.num_episodes() < number or await platform.backlog() < number - SLOTS:
        await asyncio.sleep(_POLL_SECONDS)


async def _beginnings(client: Client) -> list[Beginning]:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(workflow_id: str, loop_id: str) -> Beginning | None:
        async with slots:
            history = await client.get_workflow_handle(workflow_id).fetch_history()
            return _beginning(loop_id, history.events)

    listed = client.list_workflows("WorkflowType = 'Episode'")
    episodes = [execution.id async for execution in listed]
    found = await asyncio.gather(*(read(each, each.split("/")[1]) for each in episodes))
    return [each for each in found if each is not None]


def _beginning(loop_id: str, events: Sequence[HistoryEvent]) -> Beginning | None:
    """Read an episode's first activity; None where there is none yet.

    Its start enters the history with its end; one that was started and runs counts as waiting.
    """
    scheduled = next((event for event in events if event.event_type == _SCHEDULED), None)
    if scheduled is None:
        return None
    started = next(
        (
            event
            for event in events
            if event.event_type == _STARTED
            and event.activity_task_started_event_attributes.scheduled_event_id
            == scheduled.event_id
        ),
        None,
    )
    return Beginning(
        loop_id=loop_id,
        started_at=_time(started) if started else None,
    )


def _time(event: HistoryEvent) -> datetime:
    return event.event_time.ToDatetime(tzinfo=UTC)
