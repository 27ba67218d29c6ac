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


def engine_queue(engine: str) -> str:
    """Name the queue of the worker beside one engine."""
    return f"{Pool.ENGINE}/{engine}"
