"""What the workers of this machine are told."""

from pathlib import Path

from loopwright.contracts.queues import Pool
from loopwright.embedded.children import build_plan
from loopwright.embedded.credentials import load_credentials
from loopwright.embedded.options import StackOptions
from loopwright.embedded.ports import ChosenPorts
from loopwright.embedded.state_folder import StateFolder
from loopwright.workers.settings import Settings


def test_workers_are_of_no_build_whatever_the_shell_says(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    ports = ChosenPorts(temporal=1, ui=2, s3=3, engine=4)
    plan = build_plan(folder, StackOptions(), ports, load_credentials(folder))
    workers = [child for child in plan.children if child.name.endswith("-worker")]
    assert len(workers) == len(Pool)
    for child in workers:
        shell = {"LOOPWRIGHT_BUILD_ID": "0.2.0"}
        assert Settings.from_environment(shell | child.environment).build_id is None
