"""The workspaces of a worker's store; apart from the store, which pools without jails use too."""

from loopwright.adapters.workspaces import Workspaces
from loopwright.core.protocols import ObjectStore
from loopwright.workers.settings import Settings


def open_workspaces(settings: Settings, store: ObjectStore) -> Workspaces:
    """Give the workspaces of a store, with the cache that all processes of this host share."""
    folder = settings.state_dir / "workspaces"
    return Workspaces(store, folder, max_bytes=settings.workspace_cache_bytes)
