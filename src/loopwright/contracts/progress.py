"""What an iteration or a group is at, as its query ``progress`` tells."""

from pydantic import Field

from loopwright.contracts.base import Contract


class Trouble(Contract):
    """A failure, and the workflow to look at."""

    workflow_id: str
    reason: str


class IterationProgress(Contract):
    """The live state of an iteration."""

    index: int
    phase: str
    """What it does, in words."""
    groups: dict[str, int] = Field(default_factory=dict)
    """Groups by state: waiting, under way, admitted, no signal, lost, parked, cancelled."""
    episodes: dict[str, int] = Field(default_factory=dict)
    """Episodes of groups that have ended, by state: with reward, failed, cancelled."""
    episodes_per_minute: float | None = None
    """Rate since the first group began; None before the first has ended."""
    silent_seconds: float | None = None
    """How long nothing has ended, once that is longer than the watchdog waits."""
    troubles: tuple[Trouble, ...] = ()
    """The newest losses of groups, at most ten."""


class GroupProgress(Contract):
    """The live state of a group."""

    task_id: str
    episodes: dict[str, int] = Field(default_factory=dict)
    """Episodes by state: under way, graded, truncated, failed, cancelled, parked."""
    troubles: tuple[Trouble, ...] = ()
    """The newest failures of episodes, at most ten."""
