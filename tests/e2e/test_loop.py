"""One small loop on real Temporal, S3, vLLM, nsjail and torch, disturbed on purpose."""

import asyncio
from collections import Counter

import pytest
from temporalio.client import Client
from temporalio.worker import Replayer

from loopwright.adapters.vllm_admin import VllmAdmin
from loopwright.cli.connection import store_of
from loopwright.contracts import ids
from loopwright.contracts.iterations import LoopResult
from loopwright.embedded.stack import Stack, StackInfo
from loopwright.sdk import LoopClient
from loopwright.sdk.plugin import plugin
from loopwright.trajectories import codec
from tests.e2e.loops import check_accounts, kill, small_config, until, until_restarted
from tests.workflows.conftest import WORKFLOWS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def disturbed(platform: Stack) -> LoopResult:
    """Run a loop whose episode worker is killed in the middle of its first iteration."""
    return asyncio.run(_run_disturbed(platform))


async def _run_disturbed(platform: Stack) -> LoopResult:
    info = platform.ensure_running()
    client = await LoopClient.connect(info.temporal_address)
    handle = await client.start(small_config(), loop_id="disturbed")
    await until(handle, lambda progress: progress.phase == "iterating")
    await asyncio.sleep(1.0)
    kill(info, "episode-worker")
    await until_restarted(platform, "episode-worker", 0)
    return await handle.result()


async def test_loop_survives_the_death_of_its_episode_worker(disturbed: LoopResult) -> None:
    assert disturbed.outcome == "completed"
    assert [row.outcome for row in disturbed.results] == ["trained", "trained"]
    check_accounts(disturbed, small_config())
    assert sum(row.num_failed for row in disturbed.results) == 0


async def test_engine_and_trainer_agree_on_every_token(disturbed: LoopResult) -> None:
    for row in disturbed.results:
        assert row.metrics["mismatch_max"] < 1e-3
        assert row.metrics["mismatch_mean"] < 1e-5


async def test_every_episode_left_one_trajectory_of_the_right_version(
    disturbed: LoopResult, info: StackInfo
) -> None:
    store = store_of(info.state_dir)
    assert store is not None
    keys = [key for key in store.list_keys("loop/disturbed/") if "/trajectory-" in key]
    found = [codec.decode(store.get(key)) for key in keys]
    episodes = Counter(trajectory.episode for trajectory in found)
    assert len(episodes) == 32
    for trajectory in found:
        iteration = int(trajectory.episode.split("/")[4])
        sampled = {v for s in trajectory.samples for v in s.versions if v >= 0}
        assert sampled == {trajectory.policy.version} == {iteration - 1}


async def test_recorded_histories_replay(disturbed: LoopResult, info: StackInfo) -> None:
    client = await Client.connect(info.temporal_address, plugins=[plugin()])
    replayer = Replayer(workflows=WORKFLOWS, plugins=[plugin(is_sandboxed=True)])
    replayed = Counter[str]()
    async for execution in client.list_workflows('LoopName = "disturbed"'):
        history = await client.get_workflow_handle(execution.id).fetch_history()
        await replayer.replay_workflow(history)
        replayed[execution.workflow_type] += 1
    expected = {ids.LOOP: 1, ids.ITERATION: 2, ids.GROUP: 8, ids.EPISODE: 32}
    assert replayed == Counter(expected)


async def test_second_loop_waits_for_the_engine_and_says_so(client: LoopClient) -> None:
    first = await client.start(small_config(num_iterations=1), loop_id="first")
    await until(first, lambda progress: progress.phase == "iterating")
    second = await client.start(small_config(num_iterations=1), loop_id="second")
    waiting = await until(second, lambda p: p.phase == "waiting_for_engine" and p.detail != "")
    assert waiting.detail == "engine main is leased to loop/first"
    for handle in (first, second):
        result = await handle.result()
        check_accounts(result, small_config())
        assert result.results[0].metrics["mismatch_max"] < 1e-3


async def test_engine_killed_between_pause_and_resume_serves_its_version_again(
    platform: Stack, info: StackInfo, client: LoopClient
) -> None:
    handle = await client.start(small_config(num_iterations=1), loop_id="paused-engine")
    await until(handle, lambda progress: progress.phase == "iterating")
    async with VllmAdmin(info.engine_url, api_key=info.engine_api_key) as admin:
        await admin.pause()
        kill(info, "engine")
        await until_restarted(platform, "engine", info.children["engine"].restarts)
        result = await handle.result()
        assert await admin.served_label() == f"{result.checkpoint.policy.label}"  # type: ignore[union-attr]
        assert not await admin.is_paused()
    check_accounts(result, small_config())
    assert result.results[0].metrics["mismatch_max"] < 1e-3
