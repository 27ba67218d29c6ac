"""Episodes as groups have them when they end."""

from loopwright.contracts.episodes import EpisodeFailure, EpisodeResult
from loopwright.contracts.failures import Owner
from loopwright.contracts.turns import StopReason


def graded(reward: float | None) -> EpisodeResult:
    """Make an episode that was graded; None is a grader without a verdict."""
    return EpisodeResult(index=0, status="graded", stop_reason=StopReason.COMPLETED, reward=reward)


def failed(owner: Owner, name: str = "Broken") -> EpisodeResult:
    """Make an episode that its owner failed."""
    return EpisodeResult(
        index=0,
        status="failed",
        stop_reason=StopReason.FAILED,
        failure=EpisodeFailure(owner=owner, type=name, message=""),
    )


def cancelled() -> EpisodeResult:
    """Make an episode that somebody cancelled."""
    return EpisodeResult(index=0, status="cancelled", stop_reason=StopReason.CANCELLED)
