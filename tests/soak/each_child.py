"""A loop on the real platform while its processes are killed in turn.

Each child of the platform is killed with SIGKILL in the middle of an iteration. The loop must end
well, with an outcome for every episode.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.failures import LoopError
from loopwright.contracts.iterations import LoopProgress, LoopResult
from loopwright.embedded.stack import Stack
from loopwright.sdk import LoopClient, LoopHandle
from tests.e2e.loops import check_accounts, kill, small_config, until, until_restarted
from tests.soak.telling import say, show_logs

SECONDS_INTO_ITERATION = 1.0
LONGEST_RECOVERY_SECONDS = 600


def run(rounds: int) -> bool:
    """Kill each child so many times, and tell whether the loop bore it."""
    with tempfile.TemporaryDirectory(prefix="loopwright-soak-") as folder:
        stack = Stack(Path(folder) / "state")
        try:
            asyncio.run(_soak(stack, rounds))
        except (AssertionError, LoopError, TimeoutError) as error:
            say(f"FAILED: {type(error).__name__}: {error}")
            show_logs(Path(folder) / "state" / "logs")
            return False
        finally:
            stack.stop(say)
    return True


async def _soak(stack: Stack, rounds: int) -> None:
    info = stack.ensure_running(say)
    victims = [name for _ in range(rounds) for name in info.children]
    config = small_config(num_iterations=None)
    client = await LoopClient.connect(info.temporal_address)
    handle = await client.start(config, loop_id="soak")
    for name in victims:
        async with asyncio.timeout(LONGEST_RECOVERY_SECONDS):
            await _kill_in_iteration(stack, handle, name)
    _check(await _end(handle), config, num_iterations=len(victims))


async def _kill_in_iteration(stack: Stack, handle: LoopHandle, name: str) -> None:
    """Kill one child soon after an iteration has begun, and wait for the iteration's end."""
    number = await handle.run_iterations(1)
    await until(handle, lambda p: p.phase == "iterating" and p.iteration == number)
    await asyncio.sleep(SECONDS_INTO_ITERATION)
    info = stack.info()
    assert info is not None
    restarts, started = info.children[name].restarts, time.monotonic()
    kill(info, name)
    progress = await until(handle, lambda p: _has_done(p, number))
    seconds = time.monotonic() - started
    await until_restarted(stack, name, restarts)
    row = progress.results[-1]
    say(
        f"killed {name:15} iteration {number} {row.outcome}, {seconds:5.1f} s after the kill: "
        f"{row.num_episodes} episodes, {row.num_failed} failed, {row.num_lost} lost"
    )


def _has_done(progress: LoopProgress, number: int) -> bool:
    return bool(progress.results) and progress.results[-1].index >= number


async def _end(handle: LoopHandle) -> LoopResult:
    await handle.stop()
    return await handle.result()


def _check(result: LoopResult, config: LoopConfig, *, num_iterations: int) -> None:
    assert result.num_iterations == num_iterations
    check_accounts(result, config)
    failed = sum(row.num_failed for row in result.results)
    assert failed == 0, f"{failed} episodes failed"
    trained = [row for row in result.results if row.outcome == "trained"]
    assert trained, "no iteration trained"
    worst = max(row.metrics["mismatch_max"] for row in trained)
    assert worst < 1e-3, f"behaviour logprobs are off by {worst}"
    say(
        f"passed: {num_iterations} kills, {result.num_episodes} episodes, none lost, none failed; "
        f"largest mismatch {worst:.1e}"
    )
