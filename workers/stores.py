"""The object store of a worker."""

from loopwright.adapters.s3_store import PATIENT, Patience, S3ObjectStore
from loopwright.workers.settings import Settings


def open_store(
    settings: Settings, *, max_connections: int = 16, patience: Patience = PATIENT
) -> S3ObjectStore:
    """Open the store and make sure of its bucket.

    Raises:
        StoreError: the store cannot be reached or refuses.
    """
    store = S3ObjectStore(
        settings.s3_bucket,
        endpoint=settings.s3_endpoint,
        access_key=settings.s3_access_key,
        secret_key=settings.s3_secret_key,
        region=settings.s3_region,
        max_connections=max_connections,
        patience=patience,
    )
    store.ensure_bucket()
    return store
