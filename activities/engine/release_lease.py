"""engine.release_lease: give the engine back."""

from temporalio import activity

from loopwright.activities.engine.leases import Leases
from loopwright.contracts.engines import ReleaseLeaseRequest


class ReleaseLease:
    """Frees the engine for the next workflow."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    @activity.defn(name="engine.release_lease")
    async def release_lease(self, request: ReleaseLeaseRequest) -> None:
        """Give the engine back; no effect when the holder does not hold it."""
        await self._leases.release(request.holder)
