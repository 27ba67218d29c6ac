"""Small loops on the real platform, and what must hold of any of them."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

from loopwright.contracts.configs import (
    EvaluationConfig,
    IterationConfig,
    LoopConfig,
    TrainConfig,
)
from loopwright.contracts.iterations import LoopProgress, LoopResult
from loopwright.embedded.stack import ChildState, Stack, StackInfo
from loopwright.sdk import LoopHandle


def small_config(**changes: Any) -> LoopConfig:
    """Make a loop of two iterations of four groups of four."""
    config = LoopConfig(
        iteration=IterationConfig(num_tasks=4, group_size=4),
        evaluation=EvaluationConfig(num_tasks=4, samples=2, at_start=False, at_end=False),
        train=TrainConfig(num_minibatches=1),
        num_iterations=2,
    )
    return config.model_copy(update=changes)


async def until(handle: LoopHandle, is_so: Callable[[LoopProgress], bool]) -> LoopProgress:
    """Wait until the loop's progress is as wanted."""
    async for progress in handle.watch(every_seconds=0.1):
        if is_so(progress):
            return progress
    raise AssertionError(f"loop {handle.loop_id} ended before that")


def kill(info: StackInfo, child: str) -> None:
    """End one child of the platform by SIGKILL."""
    pid = info.children[child].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


async def until_restarted(platform: Stack, child: str, restarts: int) -> StackInfo:
    """Wait until a child has been started more than ``restarts`` times again, and is healthy."""
    while True:
        info = platform.info()
        assert info is not None, "the platform is gone"
        found = info.children[child]
        if found.restarts > restarts and found.state is ChildState.HEALTHY:
            return info
        await asyncio.sleep(0.2)


def check_accounts(result: LoopResult, config: LoopConfig) -> None:
    """Check that every episode of every iteration has an outcome."""
    asked = config.iteration.num_tasks * config.iteration.group_size
    assert result.num_lost == 0
    assert [row.num_episodes for row in result.results] == [asked] * len(result.results)
    assert [row.index for row in result.results] == list(range(1, len(result.results) + 1))
