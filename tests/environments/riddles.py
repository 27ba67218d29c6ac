"""A second environment, as another package would bring it: tasks only."""

from collections.abc import Sequence
from pathlib import Path

from loopwright.contracts.tasks import Split, TaskRef
from loopwright.environments.program_steps import ProgramSteps

NUM_TASKS = 6
"""Tasks of each split."""

_ENTRY_POINTS = "[loopwright.environments]\nriddles = tests.environments.riddles:Riddles\n"


class Riddles(ProgramSteps):
    """Has other tasks than the environment it is made from."""

    id = "riddles"

    def list_tasks(self, split: Split) -> Sequence[TaskRef]:
        """List the tasks of one split."""
        return [
            TaskRef(environment=self.id, task_id=f"{split}-{index}") for index in range(NUM_TASKS)
        ]


def install(folder: Path) -> None:
    """Lay out what an installed package says of its environments; ``folder`` is on the path."""
    info = folder / "riddles-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: riddles\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)
