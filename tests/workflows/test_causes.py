"""What a parent learns of a child that ends in the moment in which the parent is cancelled."""

import asyncio

import pytest

from loopwright.workflows.causes import all_of, end_of


async def test_child_that_ends_as_its_parent_is_cancelled_keeps_its_end() -> None:
    child, parent = await _under_way()
    child.set_result("graded")
    await _step(child)
    parent.cancel()
    assert await all_of([parent]) == ["graded"]


async def test_child_that_fails_as_its_parent_is_cancelled_keeps_its_failure() -> None:
    child, parent = await _under_way()
    child.set_exception(ValueError("broken"))
    await _step(child)
    parent.cancel()
    with pytest.raises(ValueError, match="broken"):
        await parent


async def test_child_that_goes_on_is_cancelled_with_its_parent() -> None:
    child, parent = await _under_way()
    parent.cancel()
    assert await all_of([parent]) == [None]
    assert child.cancelled()


async def _under_way() -> tuple[asyncio.Future[str], asyncio.Task[str]]:
    """Begin a child, and a parent that awaits it."""
    child: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run() -> str:
        return await child

    parent = asyncio.create_task(end_of(asyncio.create_task(run())))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return child, parent


async def _step(child: asyncio.Future[str]) -> None:
    """Let the child's task end, and not yet its parent's."""
    await asyncio.sleep(0)
