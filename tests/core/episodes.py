"""Episodes as groups have them when they end."""

from loopwright.contracts.episodes import EpisodeFailure, EpisodeResult
from loopwright.contracts.failures import row_of
from loopwright.contracts.turns import StopReason


def graded(reward: float | None) -> EpisodeResult:
    """Make an episode that was graded; None is a grader without a verdict."""
    return EpisodeResult(index=0, status="graded", stop_reason=StopReason.COMPLETED, reward=reward)


def failed(name: str = "StoreError") -> EpisodeResult:
    """Make an episode that failed; by default the platform's hosts did it."""
    return EpisodeResult(
        index=0,
        status="failed",
        stop_reason=StopReason.FAILED,
        failure=EpisodeFailure(owner=row_of(name).owner, type=name, message=""),
    )


def cancelled() -> EpisodeResult:
    """Make an episode that somebody cancelled."""
    return EpisodeResult(index=0, status="cancelled", stop_reason=StopReason.CANCELLED)
