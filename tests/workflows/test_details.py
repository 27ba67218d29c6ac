"""What running workflows tell the Web UI, on the real server with fake activities."""

import asyncio
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Replayer

from loopwright.contracts.configs import IterationConfig
from loopwright.contracts.failures import TaskError
from loopwright.contracts.progress import GroupProgress, IterationProgress
from loopwright.sdk.plugin import plugin
from tests.fakes import FakeActivities
from tests.workflows.conftest import WORKFLOWS, small_config, start_loop
from tests.workflows.test_park import until


async def shown(handle: WorkflowHandle[Any, Any]) -> str:
    """Read what the Web UI reads."""
    metadata = await handle.query("__temporal_workflow_metadata")
    return str(metadata.current_details)


async def until_shown(handle: WorkflowHandle[Any, Any], text: str) -> str:
    while text not in (found := await shown(handle)):
        await asyncio.sleep(0.02)
    return found


async def test_group_under_way_shows_its_episodes_by_state_and_links_to_those_that_failed(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [TaskError("no such task")]
    fakes.hold["episode.grade_episode"] = asyncio.Event()
    iteration = IterationConfig(num_tasks=1, group_size=4, max_replacements=0)
    loop = await start_loop(client, small_config(num_iterations=1, iteration=iteration))
    await until(lambda: fakes.counts()["episode.grade_episode"] == 3)
    child = client.get_workflow_handle(f"{loop.id}/iteration/000001")
    group = client.get_workflow_handle(f"{child.id}/task/program_steps.t0")
    text = await until_shown(group, "1 failed")
    assert text.startswith("**Task t0**\n\nEpisodes: 3 under way, 1 failed\n\nRecent failures:")
    progress: GroupProgress = await group.query("progress", result_type=GroupProgress)
    (trouble,) = progress.troubles
    assert trouble.workflow_id.startswith(f"{group.id}/episode/")
    assert trouble.reason == "TaskError: no such task"
    link = trouble.workflow_id.replace("/", "%2F")
    assert f"(/namespaces/{client.namespace}/workflows/{link}): TaskError: no such task" in text
    assert (await shown(child)).endswith("**: collecting\n\nGroups: 1 under way")
    ended = client.get_workflow_handle(trouble.workflow_id)
    assert await shown(ended) == "**failed** after 0 turns: failed"
    assert (await shown(loop)).startswith("**iterating** iteration 1\n\n0 of 1 iterations done")
    fakes.hold["episode.grade_episode"].set()
    await loop.result()


async def test_ended_iteration_shows_rates_and_links_to_the_groups_that_were_lost(
    client: Client, fakes: FakeActivities
) -> None:
    fakes.failures["episode.take_turns"] = [TaskError("no such task")] * 4
    iteration = IterationConfig(
        num_tasks=3, group_size=4, max_replacements=0, min_group_share=0.5, max_open_groups=1
    )
    loop = await start_loop(client, small_config(num_iterations=1, iteration=iteration))
    await loop.result()
    child = client.get_workflow_handle(f"{loop.id}/iteration/000001")
    progress: IterationProgress = await child.query("progress", result_type=IterationProgress)
    assert progress.groups["admitted"] == 2
    assert progress.groups["lost"] == 1
    assert progress.episodes == {"with reward": 8, "failed": 4, "cancelled": 0}
    assert progress.episodes_per_minute
    (trouble,) = progress.troubles
    assert trouble.workflow_id == f"{child.id}/task/program_steps.t0"
    assert "too few valid episodes" in trouble.reason
    assert "Episodes: 8 with reward, 4 failed; " in await shown(child)
    assert "| trained | 50.0 % | 2/3 | 4 |" in await shown(loop)


async def test_what_is_shown_does_not_disturb_replay(client: Client) -> None:
    loop = await start_loop(client, small_config(num_iterations=1))
    await loop.result()
    replayer = Replayer(workflows=WORKFLOWS, plugins=[plugin(is_sandboxed=True)])
    child = f"{loop.id}/iteration/000001"
    for workflow_id in (loop.id, child, f"{child}/task/program_steps.t0"):
        history = await client.get_workflow_handle(workflow_id).fetch_history()
        await replayer.replay_workflow(history)
