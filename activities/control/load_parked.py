"""control.load_parked: where a parked group stands is read."""

from temporalio import activity

from loopwright.adapters.artifacts import fetch
from loopwright.contracts.groups import LoadParkedRequest, ParkedGroup
from loopwright.core.protocols import ObjectStore


class LoadParked:
    """Reads groups that go on."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="control.load_parked")
    def load_parked(self, request: LoadParkedRequest) -> ParkedGroup:
        """Read the record.

        Raises:
            ArtifactDamaged: it is missing or damaged.
            ContractError: it has a newer schema.
        """
        return ParkedGroup.model_validate_json(fetch(self._store, request.parked))
