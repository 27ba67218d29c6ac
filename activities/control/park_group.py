"""control.park_group: where a group stands is stored, for a later iteration to go on with."""

from temporalio import activity

from loopwright.adapters.artifacts import keep
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.groups import ParkedGroup, ParkGroupRequest
from loopwright.core.protocols import ObjectStore


class ParkGroup:
    """Stores groups that go on later."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="control.park_group")
    def park_group(self, request: ParkGroupRequest) -> ArtifactRef:
        """Store the record; the same request gives the same artifact."""
        parked = ParkedGroup(group=request.group, episodes=request.episodes)
        return keep(
            self._store,
            parked.model_dump_json().encode(),
            prefix=request.group.episode.prefix,
            name="parked",
            suffix=".json",
            kind="parked",
        )
