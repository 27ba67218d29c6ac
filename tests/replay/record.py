"""Record histories for the replay tests: ``python -m tests.replay.record STATE LOOP``.

Of each workflow type the oldest history of the loop is stored. Do so for each release whose
workflows differ; the older ones must go on replaying.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowExecution, WorkflowHandle

import loopwright
from loopwright.embedded.stack import StackInfo
from loopwright.sdk.plugin import plugin

FOLDER = Path(__file__).parent / "histories"


async def record(state: Path, loop_id: str) -> None:
    """Store one history of each workflow type."""
    info = StackInfo.load(state)
    assert info is not None, f"no platform runs in {state}"
    client = await Client.connect(info.temporal_address, plugins=[plugin()])
    oldest: dict[str, WorkflowExecution] = {}
    async for execution in client.list_workflows(f'LoopName = "{loop_id}"'):
        known = oldest.get(execution.workflow_type)
        if known is None or execution.start_time < known.start_time:
            oldest[execution.workflow_type] = execution
    for name, execution in sorted(oldest.items()):
        await store(client.get_workflow_handle(execution.id), name)


async def store(handle: WorkflowHandle[Any, Any], name: str, *, what: str = "") -> None:
    """Store the history of one run under the name of its type, and what is special about it."""
    history = await handle.fetch_history()
    events = json.loads(history.to_json())
    path = FOLDER / f"{'-'.join(filter(None, (name, loopwright.__version__, what)))}.json"
    stored = {"id": handle.id, "history": without_identity(events)}
    text = json.dumps(stored, indent=1).replace(socket.gethostname(), "host")
    path.write_text(text + "\n")
    print(f"{path}: {len(events['events'])} events of {handle.id}")


def without_identity(value: Any) -> Any:
    """Leave out who did it: names of processes and hosts."""
    if isinstance(value, list):
        return [without_identity(item) for item in value]
    if isinstance(value, dict):
        return {k: without_identity(v) for k, v in value.items() if k != "identity"}
    return value


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1]), sys.argv[2]))
