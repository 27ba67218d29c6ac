"""engine.load_policy: object store -> local directory -> engine, version read back."""

import time

from temporalio import activity

from loopwright.activities.engine.keeper import EngineKeeper
from loopwright.activities.heartbeats import heartbeating
from loopwright.contracts.engines import LoadPolicyRequest, LoadPolicyResult


class LoadPolicy:
    """Publishes policy versions to the engine."""

    def __init__(self, keeper: EngineKeeper) -> None:
        self._keeper = keeper

    @activity.defn(name="engine.load_policy")
    async def load_policy(self, request: LoadPolicyRequest) -> LoadPolicyResult:
        """Publish the version and read it back.

        Idempotent: a version that is served already is left alone.

        Raises:
            ContractError: another workflow holds the engine.
            EngineUnavailable: the server could not take the version.
            StoreError: the checkpoint could not be fetched.
        """
        started = time.monotonic()
        async with heartbeating():
            label = await self._keeper.publish(
                request.checkpoint, holder=request.holder, in_flight=request.in_flight
            )
        return LoadPolicyResult(label=label, seconds=time.monotonic() - started)
