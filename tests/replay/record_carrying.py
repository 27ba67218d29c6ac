"""Record what a usual loop does not do: ``python -m tests.replay.record_carrying``.

A loop whose iterations overlap parks a group in the first and goes on with it in the second. Of
that group one episode is requeued and another cancelled, and the loop is set meanwhile. The server
is real, the activities are fakes.
"""

import asyncio
from collections.abc import AsyncIterator

from temporalio.client import Client, WorkflowHandle

from loopwright.contracts import ids
from loopwright.contracts.configs import IterationConfig
from loopwright.contracts.groups import EpisodeRequest
from loopwright.contracts.iterations import SetRequest
from tests.fakes import FakeActivities
from tests.replay.record import store
from tests.temporal_servers import TemporalServers
from tests.workflows.conftest import small_config, start_loop, workers
from tests.workflows.test_collection import hold_task
from tests.workflows.test_park import heads_of, until

CONFIG = small_config(
    iteration=IterationConfig(
        num_tasks=2, group_size=4, spare_groups=1, stragglers="carry", max_staleness=1
    )
)


async def record() -> None:
    """Run such a loop, and store its histories."""
    servers = TemporalServers()
    client, fakes = (
        await servers.new_namespace(is_sandboxed=True),
        FakeActivities(turns_per_episode=3),
    )
    async with workers(client, fakes):
        loop = await run(client, fakes)
        path = ids.iteration_path(loop.id, 1)
        group = f"{path}/task/program_steps.t1"
        await store(loop, ids.LOOP, what="overlapping")
        await store(client.get_workflow_handle(path), ids.ITERATION, what="parking")
        second = client.get_workflow_handle(ids.iteration_path(loop.id, 2))
        await store(second, ids.ITERATION, what="carrying")
        for name, workflow_id in ((ids.GROUP, group), (ids.EPISODE, f"{group}/episode/1")):
            found = [each async for each in runs_of(client, workflow_id)]
            await store(found[0], name, what="parked")
            await store(found[1], name, what="carried")
    await servers.stop()


async def run(client: Client, fakes: FakeActivities) -> WorkflowHandle[object, object]:
    """Run the loop to its end."""
    go_on = hold_task(fakes, "t1")
    loop = await start_loop(client, CONFIG, "recorded")
    await until(lambda: heads_of(fakes, 0)[-1:] == [1])
    group = client.get_workflow_handle(f"{ids.iteration_path(loop.id, 1)}/task/program_steps.t1")
    await loop.execute_update("set", SetRequest(changes={"environments.program_steps.weight": 2}))
    await group.execute_update("requeue_episode", EpisodeRequest(index=1))
    await group.execute_update("cancel_episode", EpisodeRequest(index=2))
    go_on.set()
    await loop.result()
    return loop


async def runs_of(
    client: Client, workflow_id: str
) -> AsyncIterator[WorkflowHandle[object, object]]:
    """Give the runs of an id, oldest first."""
    while True:
        query = f'WorkflowId = "{workflow_id}"'
        found = [each async for each in client.list_workflows(query)]
        if len(found) > 1:
            break
        await asyncio.sleep(0.1)
    for each in sorted(found, key=lambda execution: execution.start_time):
        yield client.get_workflow_handle(each.id, run_id=each.run_id)


if __name__ == "__main__":
    asyncio.run(record())
