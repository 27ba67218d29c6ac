"""References to immutable objects in the object store."""

from typing import Literal

from loopwright.contracts.base import Contract

ArtifactKind = Literal[
    "turn",
    "trajectory",
    "group",
    "parked",
    "batch",
    "checkpoint",
    "report",
    "workspace",
    "task",
]


class ArtifactRef(Contract):
    """One immutable object, addressed by its key and proved by its digest.

    Example:
        ``ArtifactRef(key="loop/a/1f/iteration/000001/batch-9c.bin", sha256="9c..", num_bytes=52,
        kind="batch")``
    """

    key: str
    """Key in the platform's bucket."""
    sha256: str
    """Hex digest of the content; checked on every read."""
    num_bytes: int
    """Size of the content in bytes."""
    kind: ArtifactKind
    """What the content is."""
