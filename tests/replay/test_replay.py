"""Stored histories of every workflow must replay with the present code."""

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from loopwright.contracts import ids
from loopwright.sdk.plugin import plugin
from tests.workflows.conftest import WORKFLOWS

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def read(path: Path) -> WorkflowHistory:
    stored = json.loads(path.read_text())
    return WorkflowHistory.from_json(stored["id"], stored["history"])


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_stored_history_replays(path: Path) -> None:
    replayer = Replayer(workflows=WORKFLOWS, plugins=[plugin(is_sandboxed=True)])
    await replayer.replay_workflow(read(path))


async def test_replay_notices_a_changed_history() -> None:
    path = next(path for path in HISTORIES if path.stem.startswith(ids.EPISODE))
    changed = json.loads(path.read_text().replace("episode.take_turns", "episode.take_a_rest"))
    history = WorkflowHistory.from_json(changed["id"], changed["history"])
    replayer = Replayer(workflows=WORKFLOWS, plugins=[plugin(is_sandboxed=True)])
    with pytest.raises(Exception, match="TMPRL1100"):
        await replayer.replay_workflow(history)


def test_every_workflow_type_has_a_stored_history() -> None:
    types = {path.stem.partition("-")[0] for path in HISTORIES}
    assert types == {
        *(ids.LOOP, ids.ITERATION, ids.GROUP, ids.EPISODE, ids.EVALUATION),
        ids.SCHEDULED_WORK,
    }
