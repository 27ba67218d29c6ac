"""Callers are let in by priority, in the order they came, and no place is lost to one who left."""

import asyncio
import random

import pytest

from loopwright.adapters.entry_queue import EntryQueue, NoPlace


class Visitors:
    """Callers of one queue, who stay inside until they are told to leave."""

    def __init__(self, limit: int) -> None:
        self.queue = EntryQueue()
        self.limit = limit
        self.entered: list[str] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def come(
        self, name: str, priority: int = 3, *, limit: int | None = None, patience: float = 60
    ) -> "asyncio.Task[None]":
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._visit(name, priority, limit, patience))
        await settle()
        return self._tasks[name]

    async def leave(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
        await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await settle()

    async def _visit(self, name: str, priority: int, limit: int | None, patience: float) -> None:
        def of_this() -> int:
            return self.limit if limit is None else limit

        async with self.queue.place(
            priority=priority, limit=of_this, longest_wait_seconds=patience
        ):
            self.entered.append(name)
            await self._ends[name].wait()


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_callers_enter_in_the_order_they_came() -> None:
    visitors = Visitors(limit=2)
    for name in "abcd":
        await visitors.come(name)
    assert visitors.entered == ["a", "b"]
    await visitors.leave("b")
    await visitors.leave("a")
    assert visitors.entered == ["a", "b", "c", "d"]


async def test_smaller_priority_goes_first_however_late_it_came() -> None:
    visitors = Visitors(limit=1)
    await visitors.come("first")
    await visitors.come("training", priority=3)
    await visitors.come("audit", priority=4)
    await visitors.come("evaluation", priority=1)
    for name in ("first", "evaluation", "training", "audit"):
        await visitors.leave(name)
    assert visitors.entered == ["first", "evaluation", "training", "audit"]


async def test_caller_who_is_cancelled_leaves_the_queue() -> None:
    visitors = Visitors(limit=1)
    for name in "abc":
        await visitors.come(name)
    await visitors.cancel("b")
    assert visitors.queue.num_waiting == 1
    await visitors.leave("a")
    assert visitors.entered == ["a", "c"]


async def test_place_of_a_caller_cancelled_in_the_moment_it_was_let_in_goes_to_the_next() -> None:
    visitors = Visitors(limit=1)
    for name in "ab":
        await visitors.come(name)
    unaware = await visitors.come("c")
    visitors.limit = 2
    visitors.queue.let_in()  # b
    visitors.limit = 3
    visitors.queue.let_in()  # c, which does not know yet
    unaware.cancel()
    await settle()
    assert visitors.entered == ["a", "b"]
    assert visitors.queue.num_inside == 2


async def test_caller_cancelled_in_the_moment_a_place_is_free_does_not_take_it() -> None:
    visitors = Visitors(limit=1)
    await visitors.come("a")
    unaware = await visitors.come("b")
    await visitors.come("c")
    unaware.cancel()
    await visitors.leave("a")
    assert visitors.entered == ["a", "c"]


async def test_caller_who_is_cancelled_inside_gives_its_place_back() -> None:
    visitors = Visitors(limit=1)
    for name in "ab":
        await visitors.come(name)
    await visitors.cancel("a")
    assert visitors.entered == ["a", "b"]


async def test_caller_who_has_waited_long_enough_is_told_so() -> None:
    visitors = Visitors(limit=1)
    await visitors.come("a")
    impatient = await visitors.come("b", patience=0)
    with pytest.raises(NoPlace):
        await impatient
    assert visitors.queue.num_waiting == 0
    await visitors.leave("a")
    assert visitors.queue.num_inside == 0


async def test_limit_that_grows_lets_in_at_once_and_one_that_shrinks_nobody_out() -> None:
    visitors = Visitors(limit=1)
    for name in "abcde":
        await visitors.come(name)
    visitors.limit = 3
    visitors.queue.let_in()
    await settle()
    assert visitors.entered == ["a", "b", "c"]
    visitors.limit = 1
    await visitors.leave("a", "b")
    assert visitors.entered == ["a", "b", "c"]
    await visitors.leave("c")
    assert visitors.entered == ["a", "b", "c", "d"]


async def test_caller_with_a_wider_limit_is_not_held_up_by_one_with_a_narrower() -> None:
    visitors = Visitors(limit=1)
    await visitors.come("a")
    await visitors.come("narrow", limit=1)
    await visitors.come("wide", limit=2)
    assert visitors.entered == ["a", "wide"]


@pytest.mark.parametrize("seed", range(5))
async def test_whoever_comes_goes_or_gives_up_the_limit_holds_and_no_place_is_lost(
    seed: int,
) -> None:
    chance, queue, most = random.Random(seed), EntryQueue(), 0

    async def visit() -> None:
        nonlocal most
        async with queue.place(
            priority=chance.randint(1, 5), limit=lambda: 4, longest_wait_seconds=60
        ):
            most = max(most, queue.num_inside)
            for _ in range(chance.randint(0, 5)):
                await asyncio.sleep(0)

    tasks = []
    for _ in range(300):
        tasks.append(asyncio.create_task(visit()))
        if chance.random() < 0.5:
            chance.choice(tasks).cancel()
        await asyncio.sleep(0)
    await asyncio.wait(tasks)
    assert (most, queue.num_inside, queue.num_waiting) == (4, 0, 0)
