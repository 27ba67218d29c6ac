"""Worker processes that are told to stop: what they are at goes on elsewhere, and nothing fails."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temporalio.testing import WorkflowEnvironment

from loopwright.contracts.attempts import PastAttempts
from loopwright.contracts.configs import EpisodeConfig
from tests.servers import end
from tests.workers.turning_worker import NUM_TURNS
from tests.workflows.inputs import episode_input, start_episode

EPISODE = episode_input(budgets=EpisodeConfig(max_turns=NUM_TURNS, turns_per_activity=NUM_TURNS))


@contextmanager
def worker(
    temporal: WorkflowEnvironment, folder: Path, *, grace_seconds: float = 30
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.workers.turning_worker", str(folder)],
        env=os.environ
        | {
            "LOOPWRIGHT_TEMPORAL_ADDRESS": temporal.client.service_client.config.target_host,
            "LOOPWRIGHT_TEMPORAL_NAMESPACE": temporal.client.namespace,
            "LOOPWRIGHT_GRACE_SECONDS": str(grace_seconds),
        },
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end(process)


async def appears(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None, f"the worker ended before {path.name} was there"
        await asyncio.sleep(0.02)


async def ends_well(process: subprocess.Popen[bytes]) -> None:
    assert await asyncio.to_thread(process.wait) == 0


def let_end(folder: Path, *turns: int) -> None:
    for number in turns:
        (folder / f"may-end-{number}").touch()


def attempts(folder: Path) -> list[Any]:
    """Give number and past of each attempt."""
    return [json.loads(line) for line in (folder / "attempts").read_text().splitlines()]


async def test_worker_that_stops_ends_its_turn_and_another_goes_on_from_there(
    temporal: WorkflowEnvironment, tmp_path: Path
) -> None:
    with worker(temporal, tmp_path) as first:
        handle = await start_episode(temporal.client, EPISODE)
        await appears(tmp_path / "begun-0", first)
        first.terminate()
        await appears(tmp_path / "stopping", first)
        let_end(tmp_path, 0)
        await ends_well(first)
    assert not (tmp_path / "begun-1").exists()
    let_end(tmp_path, 1, 2)
    with worker(temporal, tmp_path):
        result = await handle.result()
    assert (result.status, result.num_turns) == ("graded", NUM_TURNS)
    assert attempts(tmp_path) == [[1, []], [1, []]]


async def test_turn_that_outlasts_the_grace_begins_anew_and_spends_no_budget(
    temporal: WorkflowEnvironment, tmp_path: Path
) -> None:
    let_end(tmp_path, 0)
    with worker(temporal, tmp_path, grace_seconds=0.2) as first:
        handle = await start_episode(temporal.client, EPISODE)
        await appears(tmp_path / "begun-1", first)
        first.terminate()
        await ends_well(first)
    let_end(tmp_path, 1, 2)
    with worker(temporal, tmp_path):
        result = await handle.result()
    assert (result.status, result.num_turns) == ("graded", NUM_TURNS)
    assert attempts(tmp_path) == [[1, []], [2, [PastAttempts(num_ended=1).model_dump()]]]
