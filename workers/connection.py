"""How a worker reaches the Temporal server."""

from temporalio.client import Client

from loopwright.sdk import connection
from loopwright.workers.settings import Settings


async def connect(settings: Settings) -> Client:
    """Connect with the platform's plugin.

    Raises:
        UserError: nothing answers at the address, or it has no such namespace.
    """
    return await connection.connect(settings.temporal_address, settings.temporal_namespace)
