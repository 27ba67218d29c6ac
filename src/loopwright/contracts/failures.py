"""The errors that reach a workflow, and one table of what follows from each.

The class name is the failure type in workflow histories: raise and handle sites share it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

Owner = Literal["platform", "task", "user"]

RunLimit = Literal["data", "infra", "none"]
"""Which limit of a loop the losses of a failure count towards.

``data`` is about tasks and never forgets; ``infra`` is about the hosts and forgets with the next
success; ``none`` ends what it is in.
"""


class LoopError(Exception):
    """An error of the platform's own making or finding; never what the model did."""


class TaskError(LoopError):
    """A task cannot be posed or graded as it is written."""


class EnvironmentFailure(LoopError):
    """The environment's own code failed."""


class EnvironmentBusy(LoopError):
    """This host is at as many episodes of the environment as it may be; another may not be."""


class SandboxUnavailable(LoopError):
    """The host could not run a command; says nothing of the command."""


class RootMissing(SandboxUnavailable):
    """This host has no such root file system or package folder; another may."""


class EngineUnavailable(LoopError):
    """No completion of the policy version asked for could be had."""


class StoreError(LoopError):
    """The object store failed."""


class ArtifactDamaged(StoreError):
    """An object is missing or not what was written; a fault in transit would pass by itself."""

    advice: ClassVar[str] = (
        "check the disk behind the store, restore this object from a copy, or start anew"
    )
    """What helps, for the end of a message."""


class WorkspaceMissing(ArtifactDamaged):
    """A workspace, or a content in one, that neither the store nor this host has."""


class Poisoned(LoopError):
    """Attempt after attempt ended without an answer: the work seems to kill its workers."""


class TrainingDiverged(LoopError):
    """The update is not finite; the weights were left as they were."""


class LoopUnavailable(LoopError):
    """A loop, or the server that has it, did not answer."""


class LoopEnded(LoopError):
    """A loop ended before it had done what it was asked for."""


class ContractError(LoopError):
    """A record, model or request is not what this version of the platform can take."""


class UserError(LoopError):
    """A wrong configuration or argument, found before anything started."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """What follows from failures of one type."""

    owner: Owner
    budget: int
    """Failures of this type that one activity may have; the last is final, and 1 has no retry."""
    counts_towards: RunLimit
    first_pause_seconds: float = 1.0
    """Least time to the next attempt; doubled for each further failure of the type."""
    longest_pause_seconds: float = 30.0


# type                 owner       budget  run limit; pauses
FAILURES: Mapping[str, FailureRow] = {
    # Two hours without the part in question; time in which no worker asked is not counted.
    "EngineUnavailable": FailureRow("platform", 250, "infra"),
    "StoreError": FailureRow("platform", 250, "infra"),
    "LoopUnavailable": FailureRow("platform", 250, "infra"),
    # Nothing has failed: it is its turn later, and all attempts together have their own bound.
    "EnvironmentBusy": FailureRow("platform", 1_000_000, "none"),
    # Half an hour, in which another host may take it.
    "SandboxUnavailable": FailureRow("platform", 60, "infra"),
    "RootMissing": FailureRow("platform", 60, "infra"),
    "ArtifactDamaged": FailureRow("platform", 3, "infra"),
    "WorkspaceMissing": FailureRow("platform", 3, "infra"),
    "TimeoutError": FailureRow("platform", 3, "infra"),
    "TerminatedError": FailureRow("platform", 1, "infra"),
    # What no other attempt could mend.
    "Poisoned": FailureRow("platform", 1, "data"),
    "TaskError": FailureRow("task", 1, "data"),
    "EnvironmentFailure": FailureRow("task", 1, "data"),
    "PayloadsTooLarge": FailureRow("platform", 1, "data"),
    "ContractError": FailureRow("user", 1, "data"),
    "ValidationError": FailureRow("user", 1, "data"),
    "UserError": FailureRow("user", 1, "data"),
    "TrainingDiverged": FailureRow("platform", 1, "none"),
    "LoopEnded": FailureRow("platform", 1, "none"),
}
"""The row of each type of failure; subclasses that have none of their own take their parent's."""

UNKNOWN = FailureRow("platform", 3, "data", first_pause_seconds=2.0)
"""A fault nobody foresaw: few attempts, and loud."""

MAX_LOST_ATTEMPTS = 20
"""Attempts of one activity that may end without a recorded failure before it is ``Poisoned``."""

NON_RETRYABLE_TYPES = tuple(name for name, row in FAILURES.items() if row.budget == 1)
"""Failure types that no retry policy retries."""


def row_of(failure_type: str) -> FailureRow:
    """Give the row of a type of failure, of one nobody foresaw if need be."""
    return FAILURES.get(failure_type, UNKNOWN)


def type_of(error: BaseException) -> str:
    """Give the failure type of an error: the nearest of its classes that has a row."""
    names = [each.__name__ for each in type(error).__mro__ if issubclass(each, LoopError)]
    return next((name for name in names if name in FAILURES), type(error).__name__)
