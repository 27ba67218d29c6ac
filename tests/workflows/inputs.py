"""Episodes and groups started by themselves, without a loop around them."""

import uuid
from typing import Any

from temporalio.client import Client, WorkflowHandle

from loopwright.contracts import ids, queues
from loopwright.contracts.configs import EnvironmentConfig, EpisodeConfig
from loopwright.contracts.episodes import EpisodeInput, EpisodeResult
from loopwright.contracts.groups import GroupInput, GroupResult
from loopwright.contracts.policies import CheckpointRef, PolicyVersion, SamplingParams
from loopwright.contracts.tasks import TaskRef
from tests.fakes import artifact

TASK = TaskRef(environment="program_steps", task_id="t")


def episode_input(**changes: Any) -> EpisodeInput:
    """Make an episode of up to three turns, each an activity of its own."""
    base = EpisodeInput(
        prefix="loop/x/uid/iteration/000001/task/t/episode/0",
        kind="training",
        task=TASK,
        environment=EnvironmentConfig(),
        index=0,
        checkpoint=CheckpointRef(
            policy=PolicyVersion(policy_id="x", version=3), manifest=artifact("m")
        ),
        engine="main",
        sampling=SamplingParams(),
        budgets=EpisodeConfig(max_turns=3, turns_per_activity=1),
        seed=1,
    )
    return base.model_copy(update=changes)


def group_input(**changes: Any) -> GroupInput:
    """Make a group of four such episodes."""
    base = GroupInput(
        episode=episode_input(prefix="loop/x/uid/iteration/000001/task/t"),
        loop_id="x",
        iteration=1,
        size=4,
        advantage="grpo",
        max_replacements=3,
    )
    return base.model_copy(update=changes)


async def start_episode(
    client: Client, episode: EpisodeInput, *, queue: str = queues.EPISODE, **options: Any
) -> WorkflowHandle[Any, EpisodeResult]:
    """Start an episode under an id of its own."""
    return await client.start_workflow(
        ids.EPISODE,
        episode,
        id=f"episode-{uuid.uuid4()}",
        task_queue=queue,
        result_type=EpisodeResult,
        **options,
    )


async def run_episode(client: Client, episode: EpisodeInput) -> EpisodeResult:
    """Start an episode and wait for its end."""
    return await (await start_episode(client, episode)).result()


async def start_group(
    client: Client, group: GroupInput, *, group_id: str = "", **options: Any
) -> WorkflowHandle[Any, GroupResult]:
    """Start a group, under an id of its own where none is given."""
    return await client.start_workflow(
        ids.GROUP,
        group,
        id=group_id or f"group-{uuid.uuid4()}",
        task_queue=queues.CONTROL,
        result_type=GroupResult,
        **options,
    )
