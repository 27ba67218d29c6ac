"""The trajectories of an episode in the store, found by the episode's key prefix."""

import hashlib
import logging
from dataclasses import dataclass

from loopwright.contracts import ids
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.failures import ArtifactDamaged, ContractError
from loopwright.core.protocols import ObjectStore
from loopwright.trajectories import codec
from loopwright.trajectories.trajectory import Trajectory

_logger = logging.getLogger(__name__)
_READ_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class StoredTrajectory:
    """A trajectory and where it is."""

    trajectory: Trajectory
    ref: ArtifactRef


def find_trajectory(
    store: ObjectStore, episode_prefix: str, *, head: str | None = None
) -> StoredTrajectory | None:
    """Give the trajectory of the least key, which is everybody's choice; None before there is one.

    A head asks for the trajectory of that chain alone.

    Raises:
        ArtifactDamaged: there are trajectories, and none is what was written.
        ContractError: another version stored one, and this one cannot read it.
        StoreError: the store could not give them.
    """
    keys = list(store.list_keys(ids.trajectories_prefix(episode_prefix)))
    whole = [found for key in keys if (found := _read(store, key)) is not None]
    if keys and not whole:
        raise ArtifactDamaged(f"trajectory {keys[0]} is damaged; {ArtifactDamaged.advice}")
    return next((found for found in whole if head in (None, found.trajectory.head)), None)


def _read(store: ObjectStore, key: str) -> StoredTrajectory | None:
    for _ in range(_READ_ATTEMPTS):
        try:
            data = store.get(key)
        except KeyError:
            return None
        digest = hashlib.sha256(data).hexdigest()
        if ids.is_key_of(key, digest):
            ref = ArtifactRef(key=key, sha256=digest, num_bytes=len(data), kind="trajectory")
            return StoredTrajectory(_decode(key, data), ref)
    _logger.warning("trajectory %s is damaged and passed over", key)
    return None


def _decode(key: str, data: bytes) -> Trajectory:
    try:
        return codec.decode(data)
    except ContractError as error:
        raise ContractError(f"trajectory {key} cannot be read: {error}") from error
