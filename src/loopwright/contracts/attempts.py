"""What an activity's attempt tells the next one: it travels in the heartbeats."""

from pydantic import Field

from loopwright.contracts.base import Contract


class PastAttempts(Contract):
    """How the attempts before this one ended, as far as they could tell.

    Example:
        ``PastAttempts(num_failed={"EngineUnavailable": 3}, num_ended=1)``
    """

    num_failed: dict[str, int] = Field(default_factory=dict)
    """Attempts that failed, by the type of the failure."""
    num_ended: int = 0
    """Attempts that were ended from outside: their worker stopped, or somebody paused them."""
