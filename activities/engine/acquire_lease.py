"""engine.acquire_lease: an engine is leased to one policy at a time."""

from pathlib import Path

from temporalio import activity

from loopwright.activities.engine.leases import Leases
from loopwright.contracts.engines import AcquireLeaseRequest, AcquireLeaseResult
from loopwright.contracts.failures import ContractError


class AcquireLease:
    """Leases the engine to workflows whose model it was started with."""

    def __init__(
        self, leases: Leases, *, model_fingerprint: str = "", model: Path | None = None
    ) -> None:
        """Take the fingerprint and directory of the engine's model; empty is not checked."""
        self._leases = leases
        self._model_fingerprint = model_fingerprint
        self._model = model

    @activity.defn(name="engine.acquire_lease")
    async def acquire_lease(self, request: AcquireLeaseRequest) -> AcquireLeaseResult:
        """Grant the lease, unless a workflow that is still running has it.

        Idempotent: the holder is granted what it holds.

        Raises:
            ContractError: the engine was started with another model.
        """
        self._check_model(request)
        holder = await self._leases.acquire(request.holder)
        return AcquireLeaseResult(is_granted=holder == request.holder, holder=holder)

    def _check_model(self, request: AcquireLeaseRequest) -> None:
        asked, served = request.model_fingerprint, self._model_fingerprint
        if asked and served and asked != served:
            raise ContractError(
                f"engine {request.engine} was started with the model {self._model} "
                f"({served[:12]}), whose architecture, tokenizer or chat template is not that of "
                f"the policy of {request.holder} ({asked[:12]}); start it with the policy's model: "
                f"`loopwright down`, then `loopwright up --model DIR`"
            )
