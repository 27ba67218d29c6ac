"""The tree of errors that reach a workflow, each with its owner and whether a retry can help.

The class name is the failure type in workflow histories: raise and handle sites share it.
"""

from typing import ClassVar, Literal

Owner = Literal["platform", "task", "user"]


class LoopError(Exception):
    """An error of the platform's own making or finding; never what the model did."""

    owner: ClassVar[Owner] = "platform"
    is_retryable: ClassVar[bool] = True
    max_attempts: ClassVar[int | None] = None
    """Attempts after which another cannot help; None leaves it to the activity's retry policy."""


class TaskError(LoopError):
    """A task cannot be posed or graded as it is written."""

    owner = "task"
    is_retryable = False


class EnvironmentFailure(LoopError):
    """The environment's own code failed."""

    owner = "task"
    is_retryable = False


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

    max_attempts = 3
    advice: ClassVar[str] = (
        "check the disk behind the store, restore this object from a copy, or start anew"
    )
    """What helps, for the end of a message."""


class WorkspaceMissing(ArtifactDamaged):
    """A workspace, or a content in one, that neither the store nor this host has."""


class TrainingDiverged(LoopError):
    """The update is not finite; the weights were left as they were."""

    is_retryable = False


class ContractError(LoopError):
    """A record, model or request is not what this version of the platform can take."""

    owner = "user"
    is_retryable = False


class UserError(LoopError):
    """A wrong configuration or argument, found before anything started."""

    owner = "user"
    is_retryable = False


NON_RETRYABLE_TYPES = (
    *(
        error.__name__
        for error in (TaskError, EnvironmentFailure, TrainingDiverged, ContractError, UserError)
    ),
    "PayloadsTooLarge",
    "ValidationError",
)
"""Failure types that no retry policy retries."""
