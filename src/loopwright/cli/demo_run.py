"""The demo: the platform comes up, a loop runs, its report is written, the platform goes."""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loopwright.cli.config_difference import differences
from loopwright.cli.connection import store_of
from loopwright.cli.demo_result import DemoResult
from loopwright.cli.live_view import LiveView
from loopwright.cli.output import print_json, say
from loopwright.contracts.configs import EvaluationConfig, IterationConfig, LoopConfig
from loopwright.contracts.failures import LoopError, UserError
from loopwright.contracts.iterations import OPEN_STATUSES
from loopwright.embedded.stack import Stack, StackInfo
from loopwright.sdk import LoopClient, LoopHandle

LOOP_ID = "demo"
MAX_ITERATIONS = 10
TARGET_PASS_RATE = 0.87
"""First-answer pass rate at which the demo has shown what it is to show."""
EVALUATION = EvaluationConfig(num_tasks=128, samples=4, at_start=True, at_end=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRequest:
    """What the command line asks for."""

    iterations: int | None
    seed: int
    num_tasks: int
    group_size: int
    is_fresh: bool
    keep_running: bool
    state: Path
    is_json: bool

    def say(self, line: str) -> None:
        """Print a line for a person."""
        say(line, is_json=self.is_json)

    def config(self) -> LoopConfig:
        """Resolve the configuration of the loop."""
        return LoopConfig(
            iteration=IterationConfig(num_tasks=self.num_tasks, group_size=self.group_size),
            evaluation=EVALUATION,
            num_iterations=self.iterations or MAX_ITERATIONS,
            target_pass_rate=None if self.iterations else TARGET_PASS_RATE,
            seed=self.seed,
        )


def run_demo(request: DemoRequest) -> None:
    """Run the demo.

    Raises:
        LoopError: the platform did not start, the loop failed, or episodes were lost.
    """
    started = time.monotonic()
    with _platform(request) as stack:
        request.say(f"Web UI: {stack.ui_url}")
        result = asyncio.run(_run_loop(request, stack))
    _finish(request, result, wall_seconds=time.monotonic() - started)
    if result.problem:
        raise LoopError(result.problem)


@contextmanager
def _platform(request: DemoRequest) -> Iterator[StackInfo]:
    """Run the platform; stop it afterwards if it was not running before."""
    stack = Stack(request.state)
    is_ours = not stack.is_running()
    try:
        yield stack.ensure_running(request.say)
    except KeyboardInterrupt:
        request.say(
            "\ninterrupted; nothing that was computed is lost: `loopwright demo` goes on with it"
        )
        raise
    finally:
        if is_ours and not request.keep_running:
            request.say("stopping the platform")
            stack.stop(request.say)


async def _run_loop(request: DemoRequest, stack: StackInfo) -> DemoResult:
    client = await LoopClient.connect(stack.temporal_address)
    started = time.monotonic()
    handle = await start_or_go_on(client, request)
    with LiveView(stream=sys.stderr if request.is_json else sys.stdout) as view:
        await view.follow(handle.watch())
    loop_seconds = time.monotonic() - started
    # matplotlib takes long to load: a machine that lacks something has been refused by now.
    from loopwright.cli.report_files import default_path, write_report

    path = default_path(request.state, LOOP_ID)
    await write_report(handle, path, store=store_of(request.state))
    return DemoResult.of(
        await handle.result(), loop_seconds=loop_seconds, report=path, web_ui=stack.ui_url
    )


async def start_or_go_on(client: LoopClient, request: DemoRequest) -> LoopHandle:
    """Start the loop, or go on with the unfinished one."""
    unfinished = await _unfinished(client)
    if unfinished is None:
        request.say(f"starting loop {LOOP_ID}")
        return await client.start(request.config(), loop_id=LOOP_ID)
    if await unfinished.status() == "stopping":
        request.say(f"waiting for the end of loop {LOOP_ID}, which was stopped, to start anew")
        await unfinished.result()
        return await client.start(request.config(), loop_id=LOOP_ID)
    if request.is_fresh:
        request.say(f"stopping the unfinished loop {LOOP_ID} to start anew")
        await unfinished.stop(now=True)
        await unfinished.result()
        return await client.start(request.config(), loop_id=LOOP_ID)
    await _go_on(unfinished, request)
    return unfinished


async def _unfinished(client: LoopClient) -> LoopHandle | None:
    try:
        handle = await client.loop(LOOP_ID)
    except UserError:
        return None
    return handle if await handle.status() in OPEN_STATUSES else None


async def _go_on(handle: LoopHandle, request: DemoRequest) -> None:
    progress = await handle.progress()
    request.say(
        f"going on with the unfinished loop {LOOP_ID}, iteration {max(progress.iteration, 1)}"
    )
    different = differences(await handle.config(), request.config())
    if different:
        request.say(
            f"it keeps its own configuration, which differs from what this command asks for "
            f"({'; '.join(different)}); --fresh starts anew"
        )
    if progress.status in ("pausing", "paused"):
        request.say("it was paused, and is resumed")
    await handle.resume()


def _finish(request: DemoRequest, result: DemoResult, *, wall_seconds: float) -> None:
    if request.is_json:
        print_json(result.as_json(wall_seconds=wall_seconds))
        return
    for line in result.lines(wall_seconds=wall_seconds):
        say(line)
