"""How a worker reaches the Temporal server."""

from temporalio.client import Client

from loopwright.sdk import connection
from loopwright.sdk.namespaces import check_search_attributes, create_search_attributes
from loopwright.workers.settings import Settings


async def connect(settings: Settings) -> Client:
    """Connect with the platform's plugin.

    Raises:
        UserError: nothing answers at the address, it has no such namespace, or the namespace lacks
            search attributes.
    """
    client = await connection.connect(settings.temporal_address, settings.temporal_namespace)
    if settings.prepares_namespace:
        await create_search_attributes(client)
    await check_search_attributes(client)
    return client
