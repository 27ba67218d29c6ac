"""Whether an activity may be tried again, and when: budgets are counted by type of failure."""

from loopwright.contracts.attempts import PastAttempts
from loopwright.contracts.failures import MAX_LOST_ATTEMPTS, row_of


def with_failure(past: PastAttempts, failure_type: str) -> PastAttempts:
    """Count one more failure of a type."""
    num_failed = past.num_failed | {failure_type: past.num_failed.get(failure_type, 0) + 1}
    return past.model_copy(update={"num_failed": num_failed})


def with_end(past: PastAttempts) -> PastAttempts:
    """Count one more attempt that was ended from outside."""
    return past.model_copy(update={"num_ended": past.num_ended + 1})


def is_spent(past: PastAttempts, failure_type: str) -> bool:
    """Tell whether failures of a type have used up their budget, whatever else happened."""
    return past.num_failed.get(failure_type, 0) >= row_of(failure_type).budget


def pause_seconds(past: PastAttempts, failure_type: str) -> float:
    """Give the time to the next attempt after the newest of the failures of a type."""
    row = row_of(failure_type)
    doublings = min(past.num_failed.get(failure_type, 1) - 1, 30)
    return min(row.first_pause_seconds * 2.0**doublings, row.longest_pause_seconds)


def num_lost(past: PastAttempts, *, attempt: int) -> int:
    """Count the attempts before ``attempt`` (from 1) that ended without telling how."""
    return max(0, attempt - 1 - past.num_ended - sum(past.num_failed.values()))


def is_poison(past: PastAttempts, *, attempt: int) -> bool:
    """Tell whether so many attempts were lost that the next may kill its worker, too."""
    return num_lost(past, attempt=attempt) >= MAX_LOST_ATTEMPTS
