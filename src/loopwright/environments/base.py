"""The environment contract: a task becomes a conversation, as data.

An environment holds no episode. Everything it must remember between turns is ``state``, a JSON
object that is part of each turn record, so any worker on any host can take the next turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from loopwright.contracts.episodes import Grade
from loopwright.contracts.tasks import Split, Task, TaskRef
from loopwright.contracts.turns import JsonObject, Message, StopReason
from loopwright.contracts.workspaces import Limits, Workspace
from loopwright.core.protocols import Jail


@dataclass(frozen=True, slots=True)
class Pose:
    """How an episode opens."""

    state: JsonObject
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The environment's answer to one completion."""

    state: JsonObject
    messages: tuple[Message, ...] = ()
    """What the policy reads next; empty at a stop."""
    stop_reason: StopReason | None = None
    """None when the episode goes on."""
    turn_reward: float = 0.0
    workspace: Workspace | None = None
    """The workspace after the turn; kept in the store before the turn is committed."""


class Environment(Protocol):
    """Poses tasks of one family and judges what the policy makes of them.

    ``reply`` and ``grade`` block while the jail works. What the model did wrong is a reply, a
    verdict or a stop reason; an exception says that the platform or the task is at fault.
    """

    id: str

    def list_tasks(self, split: Split) -> Sequence[TaskRef]:
        """List the tasks of one split, always in the same order."""
        ...

    def load_task(self, task_id: str) -> Task:
        """Give a task whole.

        Raises:
            TaskError: there is no task of this id.
        """
        ...

    def pose(self, task: Task) -> Pose:
        """Open the conversation."""
        ...

    def reply(
        self, task: Task, state: JsonObject, completion: str, *, jail: Jail, limits: Limits
    ) -> Reply:
        """Answer one completion of the policy."""
        ...

    def grade(self, task: Task, state: JsonObject, *, jail: Jail, limits: Limits) -> Grade:
        """Judge the final state in a fresh jail, with hidden material the policy never saw.

        It goes into the jail as files or standard input, of which records hold digests only.
        """
        ...
