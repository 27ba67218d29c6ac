"""How many completions an engine is asked for, against one that only counts."""

import random
from dataclasses import dataclass, field

import pytest

from loopwright.core.concurrency import (
    PAUSE_POLLS,
    SIGHT_SECONDS,
    ConcurrencyController,
    EngineLoad,
)
from tests.core.simulated_engine import RequestSource, SimulatedEngine

STEPS_PER_POLL = 20
"""A poll of two seconds, at a tenth of a second a step."""
SECONDS_PER_STEP = 0.1


@dataclass
class Run:
    """Workers that keep an engine as full as their controllers let them, from an endless queue."""

    engine: SimulatedEngine
    source: RequestSource
    controllers: list[ConcurrencyController]
    is_blind: bool = False
    step: int = 0
    usages: list[float] = field(default_factory=list)
    """Of each poll."""

    def go(self, num_polls: int) -> None:
        for _ in range(num_polls):
            if not self.is_blind:
                self._poll()
            for _ in range(STEPS_PER_POLL):
                self._take_step()
            self.usages.append(self.engine.load().usage)

    @property
    def limit(self) -> int:
        return sum(controller.limit for controller in self.controllers)

    def _take_step(self) -> None:
        in_flight = [self._fill(worker) for worker in range(len(self.controllers))]
        for ended in self.engine.step():
            controller = self.controllers[ended.worker]
            controller.completed(num_in_flight=in_flight[ended.worker], now=self._now())
            in_flight[ended.worker] -= 1
        self.step += 1

    def _fill(self, worker: int) -> int:
        num_in_flight = self.engine.num_in_flight(worker)
        for _ in range(self.controllers[worker].limit - num_in_flight):
            self.engine.waiting.append(self.source.next(worker))
            num_in_flight += 1
        return num_in_flight

    def _poll(self) -> None:
        for worker, controller in enumerate(self.controllers):
            controller.polled(
                self.engine.load(),
                num_in_flight=self.engine.num_in_flight(worker),
                longest_tokens=self.source.longest_tokens,
                now=self._now(),
            )

    def _now(self) -> float:
        return self.step * SECONDS_PER_STEP


def run_of(
    workload: dict[str, int], *, seed: int = 0, max_concurrent: int = 1000, num_workers: int = 1
) -> Run:
    return Run(
        SimulatedEngine(workload["capacity"]),
        RequestSource(workload["prompt"], workload["most_sampled"], seed),
        [ConcurrencyController(max_concurrent) for _ in range(num_workers)],
    )


def load(
    usage: float = 0.1, *, running: int = 10, waiting: int = 0, preemptions: int = 0
) -> EngineLoad:
    return EngineLoad(usage, running, waiting, preemptions, capacity_tokens=None)


def controller_at(limit: int) -> ConcurrencyController:
    """Give one that has seen an idle engine and stands at its limit, ``limit``."""
    controller = ConcurrencyController(limit)
    poll(controller, load(), num_in_flight=limit)
    return controller


def poll(
    controller: ConcurrencyController, load: EngineLoad, *, num_in_flight: int, now: float = 0
) -> int:
    controller.polled(load, num_in_flight=num_in_flight, longest_tokens=1, now=now)
    return controller.limit


WORKLOADS = [
    # Long prompts and short answers, the reverse, both short, and a small engine.
    {"capacity": 60_000, "prompt": 2000, "most_sampled": 200},
    {"capacity": 60_000, "prompt": 50, "most_sampled": 2000},
    {"capacity": 15_000, "prompt": 50, "most_sampled": 100},
    {"capacity": 6_000, "prompt": 200, "most_sampled": 400},
]


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("num_workers", [1, 3])
def test_engine_is_kept_busy_and_next_to_nothing_is_thrown_out(
    workload: dict[str, int], num_workers: int
) -> None:
    run = run_of(workload, num_workers=num_workers)
    run.go(150)
    before = run.engine.num_preemptions
    run.go(100)
    usages = run.usages[150:]
    assert 0.5 < sum(usages) / len(usages) < 0.9
    assert run.engine.num_preemptions - before <= 5


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_fixed_limit_would_give_much_more(workload: dict[str, int]) -> None:
    average = workload["prompt"] + workload["most_sampled"] * 0.55 / 2
    fitting = workload["capacity"] / average
    fixed = [run_of(workload, max_concurrent=round(share * fitting)) for share in (0.8, 1.0)]
    for run in fixed:
        run.is_blind = True
    assert settled_tokens(run_of(workload)) > 0.65 * max(map(settled_tokens, fixed))


def settled_tokens(run: Run) -> int:
    """Count what is sampled once the limit has settled."""
    run.go(250)
    before = run.engine.num_sampled
    run.go(100)
    return run.engine.num_sampled - before


@pytest.mark.parametrize("seed", range(20))
def test_limit_stays_between_one_and_the_most_whatever_the_engine_says(seed: int) -> None:
    chance = random.Random(seed)
    controller = ConcurrencyController(chance.randint(1, 50))
    most, num_preemptions, now = controller.limit, 0, 0.0
    for _ in range(2000):
        now += chance.expovariate(1)
        num_in_flight = chance.randint(0, 60)
        if chance.random() < 0.5:
            controller.completed(num_in_flight=num_in_flight, now=now)
        else:
            num_preemptions = chance.choice([num_preemptions, num_preemptions + 1, 0])
            controller.polled(
                EngineLoad(
                    usage=chance.random(),
                    num_running=chance.randint(0, 60),
                    num_waiting=chance.choice([0, chance.randint(0, 60)]),
                    num_preemptions=num_preemptions,
                    capacity_tokens=chance.choice([None, 0, 10_000]),
                ),
                num_in_flight=num_in_flight,
                longest_tokens=chance.randint(0, 500),
                now=now,
            )
        assert 1 <= controller.limit <= most


def test_what_is_sure_to_fit_is_the_beginning() -> None:
    controller = ConcurrencyController(100)
    idle = EngineLoad(0.0, 0, 0, 0, capacity_tokens=10_000)
    controller.polled(idle, num_in_flight=0, longest_tokens=400, now=0)
    assert controller.limit == 25


def test_limit_grows_by_a_quarter_with_each_turnover_while_there_is_room() -> None:
    controller = ConcurrencyController(100)
    idle = EngineLoad(0.1, 8, 0, 0, capacity_tokens=800)
    controller.polled(idle, num_in_flight=8, longest_tokens=100, now=0)
    for _ in range(8):
        assert controller.limit == 8
        controller.completed(num_in_flight=8, now=1)
    assert controller.limit == 10


@pytest.mark.parametrize(
    ("said", "num_in_flight", "seconds_later"),
    [
        (load(0.61), 8, 0),
        (load(0.1, waiting=1), 8, 0),
        (load(0.1, preemptions=1), 8, 0),
        # The limit is not what holds it down.
        (load(0.1), 7, 0),
        # A worker that sees nothing keeps what it has.
        (load(0.1), 8, SIGHT_SECONDS + 1),
    ],
)
def test_limit_grows_only_where_more_is_wanted_and_seen_to_fit(
    said: EngineLoad, num_in_flight: int, seconds_later: float
) -> None:
    controller = ConcurrencyController(100)
    idle = EngineLoad(0.1, 8, 0, 0, capacity_tokens=800)
    controller.polled(idle, num_in_flight=8, longest_tokens=100, now=0)
    controller.polled(said, num_in_flight=num_in_flight, longest_tokens=100, now=0)
    for _ in range(50):
        controller.completed(num_in_flight=num_in_flight, now=seconds_later)
    assert controller.limit <= 8


def test_blind_worker_keeps_its_limit() -> None:
    run = run_of(WORKLOADS[3])
    run.go(5)
    run.is_blind = True
    run.go(int(SIGHT_SECONDS))  # what the last poll allowed has ended by then
    settled = run.limit
    run.go(50)
    assert run.limit == settled


# in flight x 0.7 / usage; x the share that runs where others wait inside
@pytest.mark.parametrize(
    ("said", "limit"),
    [
        (load(0.80), 100),
        (load(0.875), 80 * 0.7 / 0.875),
        (load(1.0), 80 * 0.7),
        (load(1.0, running=30, waiting=10), 80 * 0.7 * 0.75),
    ],
)
def test_full_engine_is_asked_for_what_fits(said: EngineLoad, limit: float) -> None:
    assert poll(controller_at(100), said, num_in_flight=80) == int(limit)


def test_next_cut_waits_until_the_last_one_shows() -> None:
    controller = controller_at(100)
    full = load(0.875)
    assert poll(controller, full, num_in_flight=100) == 80
    for _ in range(20):  # its excess has not ended
        assert poll(controller, full, num_in_flight=81) == 80
    for _ in range(PAUSE_POLLS):
        assert poll(controller, full, num_in_flight=80) == 80
    assert poll(controller, full, num_in_flight=80) == 64


def test_dangerously_full_engine_is_not_waited_for() -> None:
    controller = controller_at(100)
    assert poll(controller, load(0.95), num_in_flight=100) == 73
    assert poll(controller, load(0.95), num_in_flight=73) == 73
    assert poll(controller, load(0.95), num_in_flight=73) == 53


def test_queue_in_the_engine_is_one_only_if_it_lasts() -> None:
    controller = controller_at(100)
    queued = load(0.5, running=10, waiting=6)
    for _ in range(PAUSE_POLLS - 1):
        assert poll(controller, queued, num_in_flight=100) == 100
    poll(controller, load(0.5), num_in_flight=100)
    for _ in range(PAUSE_POLLS - 1):
        assert poll(controller, queued, num_in_flight=100) == 100
    assert poll(controller, queued, num_in_flight=100) == 90


def test_preemptions_cut_at_once_and_deeper_when_they_come_again() -> None:
    controller = controller_at(100)
    assert poll(controller, load(preemptions=3), num_in_flight=100) == 80
    assert poll(controller, load(preemptions=5), num_in_flight=90) == 80  # it drains
    assert poll(controller, load(preemptions=5), num_in_flight=80) == 80
    assert poll(controller, load(preemptions=6), num_in_flight=80) == 40


def test_preemptions_long_after_the_last_are_a_matter_of_their_own() -> None:
    controller = controller_at(100)
    assert poll(controller, load(preemptions=3), num_in_flight=100) == 80
    for _ in range(PAUSE_POLLS + 1):
        poll(controller, load(preemptions=3), num_in_flight=80)
    assert poll(controller, load(preemptions=4), num_in_flight=80) == 64


def test_preemptions_before_the_first_poll_and_of_an_engine_started_anew_cut_nothing() -> None:
    controller = ConcurrencyController(100)
    assert poll(controller, load(preemptions=50), num_in_flight=100) == 100
    assert poll(controller, load(preemptions=0), num_in_flight=100) == 100
