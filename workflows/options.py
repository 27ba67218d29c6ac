"""Timeouts, retries and queue of each activity, side by side."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from temporalio import activity, workflow
from temporalio.common import Priority as TemporalPriority
from temporalio.common import RetryPolicy

from loopwright.contracts import queues
from loopwright.contracts.configs import Profile
from loopwright.contracts.episodes import Priority
from loopwright.contracts.failures import NON_RETRYABLE_TYPES

_ABRUPT = workflow.ActivityCancellationType.TRY_CANCEL
_SOFT = workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED

Request = TypeVar("Request")
Result = TypeVar("Result")

HEARTBEAT_TIMEOUT: dict[Profile, timedelta] = {
    "embedded": timedelta(seconds=20),
    "cluster": timedelta(seconds=120),
    "many_open": timedelta(seconds=300),
}
"""Longer than the Temporal server takes to restart, or an outage re-runs all that is in flight."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a caller waits for a worker that may not exist, asking again and again."""

    first_seconds: float = 5.0
    """Wait of the first try; doubled for each further one."""
    longest_seconds: float = 60.0
    total_seconds: float = 600.0
    """Wait of all tries together; while the platform is off nobody makes any."""


@dataclass(frozen=True, slots=True)
class Options:
    """How one activity is called."""

    start_to_close: timedelta
    queue: str | None = None
    """None where the caller names it."""
    heartbeats: bool = False
    schedule_to_close: timedelta = timedelta(days=30)
    """Bound of all attempts together, waiting included: a platform that was off goes on within it.

    Short where giving up does no harm. Where a worker may not exist, the caller bounds the wait for
    one and asks again (``Patience``).
    """
    ends_softly: bool = False
    """Whether a cancelled one is waited for: it ends what it is at and tells where it stands."""


def _options(minutes: float, queue: str | None, *, heartbeats: bool = False) -> Options:
    return Options(timedelta(minutes=minutes), queue, heartbeats)


# activity                     minutes of one attempt; queue
TABLE: dict[str, Options] = {
    "control.select_tasks": _options(1, queues.CONTROL),
    "control.ask_loop": _options(1, queues.CONTROL),
    "control.await_loop": _options(120, queues.WAITS, heartbeats=True),
    "control.score_group": _options(1, queues.CONTROL),
    "control.park_group": _options(1, queues.CONTROL),
    "control.load_parked": _options(1, queues.CONTROL),
    "control.write_report": _options(5, queues.CONTROL),
    "episode.take_turns": Options(
        timedelta(minutes=30), queues.EPISODE, heartbeats=True, ends_softly=True
    ),
    "episode.grade_episode": _options(10, queues.EPISODE, heartbeats=True),
    "engine.acquire_lease": _options(1, None),
    "engine.release_lease": Options(timedelta(minutes=1), schedule_to_close=timedelta(minutes=10)),
    "engine.load_policy": _options(10, None, heartbeats=True),
    "trainer.import_policy": _options(30, queues.TRAINER, heartbeats=True),
    "trainer.build_batch": _options(30, queues.TRAINER, heartbeats=True),
    "trainer.train_step": _options(24 * 60, queues.TRAINER, heartbeats=True),
}

RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=0,
    non_retryable_error_types=list(NON_RETRYABLE_TYPES),
)
"""Attempts have no bound of their own: those that a dying worker or server takes cost nothing.

``contracts.failures`` bounds failures by their type, and attempts that are lost; the pauses here
follow lost attempts, failures have their own.
"""


async def call(
    signature: Callable[[Request], Awaitable[Result]],
    request: Request,
    *,
    summary: str,
    queue: str | None = None,
    profile: Profile = "embedded",
    priority: Priority | None = None,
    schedule_to_start: timedelta | None = None,
) -> Result:
    """Run an activity by its declared signature, with the options of its row."""
    definition = activity._Definition.must_from_callable(signature)
    options = TABLE[str(definition.name)]
    return await workflow.execute_activity(
        signature,
        request,
        task_queue=queue or options.queue,
        start_to_close_timeout=options.start_to_close,
        schedule_to_close_timeout=options.schedule_to_close,
        schedule_to_start_timeout=schedule_to_start,
        heartbeat_timeout=HEARTBEAT_TIMEOUT[profile] if options.heartbeats else None,
        retry_policy=RETRY,
        cancellation_type=_SOFT if options.ends_softly else _ABRUPT,
        summary=summary,
        priority=temporal_priority(priority),
    )


def temporal_priority(priority: Priority | None) -> TemporalPriority:
    """Translate a priority; None inherits the workflow's."""
    if priority is None:
        return TemporalPriority.default
    return TemporalPriority(
        priority_key=priority.key,
        fairness_key=priority.fairness_key or None,
        fairness_weight=priority.fairness_weight,
    )
