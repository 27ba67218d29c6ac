"""An engine behind an adaptive limit: who is let through when, and what it learns from polls."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from loopwright.adapters.limited_engine import LimitedEngine
from loopwright.contracts.engines import Completion, GenerateRequest
from loopwright.contracts.failures import EngineUnavailable
from loopwright.contracts.policies import PolicyVersion, SamplingParams
from loopwright.core.concurrency import EngineLoad


class HeldEngine:
    """Answers when it is told to, and says of its load what it is told."""

    def __init__(self) -> None:
        self.said: EngineLoad | EngineUnavailable | None = None
        self.num_polls = 0
        self.seeds: list[int] = []
        """Of what it was asked, in order."""
        self.errors: dict[int, EngineUnavailable] = {}
        self._held: dict[int, asyncio.Event] = {}

    async def generate(self, request: GenerateRequest) -> Completion:
        self.seeds.append(request.seed)
        held = self._held.setdefault(request.seed, asyncio.Event())
        await held.wait()
        if request.seed in self.errors:
            raise self.errors[request.seed]
        return Completion(
            token_ids=(1,), behaviour_logprobs=(-0.5,), finish_reason="stop", version_spans=()
        )

    async def load(self) -> EngineLoad | None:
        self.num_polls += 1
        await asyncio.sleep(0)
        if isinstance(self.said, EngineUnavailable):
            raise self.said
        return self.said

    def answer(self, *seeds: int) -> None:
        for seed in seeds:
            self._held.setdefault(seed, asyncio.Event()).set()


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def held() -> HeldEngine:
    return HeldEngine()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def engine(held: HeldEngine, clock: Clock) -> AsyncIterator[LimitedEngine]:
    async with LimitedEngine(
        held, name="main", max_concurrent=2, poll_seconds=0, clock=clock
    ) as engine:
        yield engine


def request_of(seed: int, *, priority_key: int = 3) -> GenerateRequest:
    return GenerateRequest(
        token_ids=(1, 2, 3, 4),
        policy=PolicyVersion(policy_id="p", version=0),
        sampling=SamplingParams(),
        max_tokens=6,
        stop_token_ids=(7,),
        seed=seed,
        priority_key=priority_key,
    )


async def ask(
    engine: LimitedEngine, *seeds: int, priority_key: int = 3
) -> "list[asyncio.Task[Completion]]":
    """Ask for completions, and wait until whatever may go through has."""
    tasks = [
        asyncio.create_task(engine.generate(request_of(seed, priority_key=priority_key)))
        for seed in seeds
    ]
    await settle()
    return tasks


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def test_no_more_than_the_limit_are_asked_for_at_once(
    engine: LimitedEngine, held: HeldEngine
) -> None:
    await ask(engine, 0, 1, 2)
    assert held.seeds == [0, 1]
    held.answer(0)
    await settle()
    assert held.seeds == [0, 1, 2]


async def test_evaluations_that_wait_go_through_before_training_that_came_earlier(
    engine: LimitedEngine, held: HeldEngine
) -> None:
    await ask(engine, 0, 1, 2, 3)
    await ask(engine, 10, 11, priority_key=1)
    held.answer(0, 1, 10, 11)
    await settle()
    assert held.seeds == [0, 1, 10, 11, 2, 3]


async def test_request_that_is_cancelled_while_it_waits_is_never_asked(
    engine: LimitedEngine, held: HeldEngine
) -> None:
    tasks = await ask(engine, 0, 1, 2, 3)
    tasks[2].cancel()
    await settle()
    held.answer(0, 1)
    await settle()
    assert held.seeds == [0, 1, 3]


async def test_engine_that_fails_gives_its_places_back(
    engine: LimitedEngine, held: HeldEngine
) -> None:
    held.errors = {0: EngineUnavailable("down")}
    tasks = await ask(engine, 0, 1, 2)
    held.answer(0)
    with pytest.raises(EngineUnavailable, match="down"):
        await tasks[0]
    await settle()
    assert held.seeds == [0, 1, 2]


async def test_first_requests_wait_for_what_the_engine_says_it_bears(held: HeldEngine) -> None:
    # Of 10 tokens each, 37 tokens hold three.
    held.said = EngineLoad(0.0, 0, 0, 0, capacity_tokens=37)
    async with LimitedEngine(held, name="main", max_concurrent=100, poll_seconds=0) as engine:
        await ask(engine, *range(10))
        assert held.seeds == [0, 1, 2]


async def test_requests_wait_longer_where_the_engine_is_full(
    engine: LimitedEngine, held: HeldEngine
) -> None:
    held.said = EngineLoad(0.99, 2, 0, 0)
    await ask(engine, 0, 1, 2)
    assert engine.limit == 1
    held.answer(0)
    await settle()
    assert held.seeds == [0, 1]
    held.answer(1)
    await settle()
    assert held.seeds == [0, 1, 2]


@pytest.mark.parametrize("said", [None, EngineUnavailable("no answer")])
async def test_engine_that_does_not_say_how_busy_it_is_gets_the_most_and_a_warning(
    engine: LimitedEngine,
    held: HeldEngine,
    said: EngineUnavailable | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    held.said = said
    with caplog.at_level(logging.WARNING):
        await ask(engine, 0, 1, 2)
    assert held.seeds == [0, 1]
    warnings = [each.getMessage() for each in caplog.records if "busy" in each.getMessage()]
    assert len(warnings) == 1
    assert warnings[0].startswith("engine main does not say how busy it is; at most 2 completions")


async def test_limit_stays_where_it_was_when_the_engine_falls_silent(
    engine: LimitedEngine, held: HeldEngine
) -> None:
    held.said = EngineLoad(0.99, 2, 0, 0)
    await ask(engine, 0, 1)
    held.said = EngineUnavailable("no answer")
    held.answer(0, 1, 2, 3, 4)
    await ask(engine, 2, 3, 4)
    assert engine.limit == 1


async def test_idle_engine_is_not_polled(engine: LimitedEngine, held: HeldEngine) -> None:
    held.answer(0)
    await ask(engine, 0)
    before = held.num_polls
    await settle()
    assert held.num_polls == before > 0
    await ask(engine, 1)
    assert held.num_polls > before


async def test_request_that_finds_no_place_is_told_to_come_again(held: HeldEngine) -> None:
    async with LimitedEngine(
        held, name="main", max_concurrent=1, poll_seconds=0, longest_wait_seconds=0.01
    ) as engine:
        held.said = EngineLoad(0.0, 0, 0, 0)
        first, second = await ask(engine, 0, 1)
        with pytest.raises(EngineUnavailable, match="engine main has had no place"):
            await second
        held.answer(0)
        assert (await first).token_ids == (1,)


async def test_time_for_a_place_is_told_apart(
    engine: LimitedEngine, held: HeldEngine, clock: Clock
) -> None:
    tasks = await ask(engine, 0, 1, 2)
    clock.now = 40.0
    held.answer(0, 1)
    await settle()
    clock.now = 100.0
    held.answer(2)
    assert [(await task).waited_seconds for task in tasks] == [0.0, 0.0, 40.0]
