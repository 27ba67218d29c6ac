"""Pools of workers and their task queues."""

from enum import StrEnum


class Pool(StrEnum):
    """Kinds of worker process."""

    CONTROL = "control"
    EPISODE = "episode"
    ENGINE = "engine"
    TRAINER = "trainer"


CONTROL = str(Pool.CONTROL)
EPISODE = str(Pool.EPISODE)
TRAINER = str(Pool.TRAINER)
WAITS = f"{Pool.CONTROL}/waits"
"""Queue of the activities that only wait: they never keep the control pool's work from a slot."""


def engine_queue(engine: str) -> str:
    """Name the queue of the worker beside one engine."""
    return f"{Pool.ENGINE}/{engine}"
