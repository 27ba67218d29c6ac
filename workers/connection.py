"""How a worker, and whoever watches loops, reaches the Temporal server."""

from temporalio.client import Client
from temporalio.service import GrpcCompression

from loopwright.contracts.failures import UserError
from loopwright.sdk.plugin import plugin
from loopwright.workers.settings import Settings


async def connect(settings: Settings) -> Client:
    """Connect with the platform's plugin.

    Raises:
        UserError: nothing answers at the address.
    """
    try:
        return await Client.connect(
            settings.temporal_address,
            namespace=settings.temporal_namespace,
            plugins=[plugin()],
            grpc_compression=GrpcCompression.NONE,
        )
    except RuntimeError as error:
        raise UserError(
            f"cannot reach Temporal at {settings.temporal_address}: {error}; "
            f"start it (`loopwright up`) or set LOOPWRIGHT_TEMPORAL_ADDRESS"
        ) from error
