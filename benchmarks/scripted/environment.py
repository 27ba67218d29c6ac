"""An environment whose reward depends on every token of an episode, and that needs no skill."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from pydantic import Field

from loopwright.contracts.base import Configuration
from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.episodes import Component, Grade, Verdict
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.tasks import Case, Split, Task, TaskRef
from loopwright.contracts.turns import JsonObject, Message, StopReason
from loopwright.contracts.workspaces import CommandRequest, Limits, Workspace
from loopwright.core.protocols import Jail
from loopwright.environments.base import Environment, Pose, Reply
from loopwright.environments.rubrics import grade

LEDGER = "ledger"
_FILE = "ledger.txt"
_NUM_LEVELS = 5
_ENTRY_POINTS = (
    "[loopwright.environments]\nledger = benchmarks.scripted.environment:LedgerEnvironment\n"
)


class LedgerOptions(Configuration):
    """Options of the environment."""

    num_turns: int = Field(default=4, ge=1)
    num_tasks: int = Field(default=1000, ge=1)
    """Tasks of each split."""
    uses_jail: bool = False
    """Whether each turn and the grader run a command in the sandbox."""
    has_signal: bool = True
    """False gives every episode the reward 0, so that no group teaches anything."""


class LedgerEnvironment(Environment):
    """Enters the digest of each completion in a ledger; its digest is worth 0, 1/4, ... or 1.

    Without the jail its tool does nothing, and leaves no workspace.

    State: ``{"lines": [str, ...]}``.
    """

    id = LEDGER

    def __init__(self, config: EnvironmentConfig) -> None:
        """Check the options."""
        self._options = LedgerOptions.model_validate(config.options)

    def list_tasks(self, split: Split) -> Sequence[TaskRef]:
        """List the tasks of one split."""
        return [
            TaskRef(environment=LEDGER, task_id=f"{split}-{i}")
            for i in range(self._options.num_tasks)
        ]

    def load_task(self, task_id: str) -> Task:
        """Give a task whole; all are alike but for their names."""
        return Task(
            task_id=task_id,
            prompt=f"Say anything about {task_id}.",
            entry="",
            visible_tests=(),
            hidden_tests=(Case(args=(), expected=None),),
        )

    def pose(self, task: Task) -> Pose:
        """Open an empty ledger."""
        return Pose(state={"lines": []}, messages=(Message(role="user", content=task.prompt),))

    def reply(
        self, task: Task, state: JsonObject, completion: str, *, jail: Jail, limits: Limits
    ) -> Reply:
        """Enter the completion, and say what the ledger comes to."""
        lines = [*state["lines"], sha256(completion.encode()).hexdigest()[:16]]
        ledger = _ledger(lines)
        total = self._total(ledger, jail, limits)
        is_over = len(lines) >= self._options.num_turns
        return Reply(
            state={"lines": lines},
            messages=() if is_over else (Message(role="user", content=f"{total[:8]}. Go on."),),
            stop_reason=StopReason.COMPLETED if is_over else None,
            workspace=ledger if self._options.uses_jail else None,
        )

    def grade(self, task: Task, state: JsonObject, *, jail: Jail, limits: Limits) -> Grade:
        """Judge the ledger's digest."""
        total = self._total(_ledger(state["lines"]), jail, limits)
        level = int(total[:8], 16) % _NUM_LEVELS if self._options.has_signal else 0
        score = level / (_NUM_LEVELS - 1)
        verdict = Verdict.PASS if score == 1.0 else Verdict.FAIL
        return grade(verdict, {"ledger": Component(score=score, weight=1.0)})

    def _total(self, workspace: Workspace, jail: Jail, limits: Limits) -> str:
        """Digest the ledger's file, in the jail or here."""
        if not self._options.uses_jail:
            return sha256(workspace.files[0].data or b"").hexdigest()
        request = CommandRequest(argv=("/usr/bin/sha256sum", _FILE), limits=limits, collect=False)
        result = jail.run(workspace, request).result
        if result.exit_code != 0:
            # The command cannot fail: the host kept it from running.
            raise SandboxUnavailable(f"the ledger could not be summed up: {result}")
        return result.stdout.decode().split()[0]


def _ledger(lines: Sequence[str]) -> Workspace:
    return Workspace.of({_FILE: "\n".join([*lines, ""]).encode()})


def install(folder: Path) -> Path:
    """Lay out what an installed package says of its environments; ``folder`` joins the path."""
    info = folder / "ledger-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ledger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)
    return folder
