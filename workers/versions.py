"""Which build of the platform a worker is, for deploys while episodes are in flight."""

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from loopwright import __version__
from loopwright.contracts.queues import Pool
from loopwright.workers.settings import Settings

BUILD = f"loopwright-{__version__}"
"""Told to Temporal where builds are not told apart.

Without one, its SDK would digest the code of every module, and load those that are loaded when
something asks for them: torch among them.
"""


def deployment_of(pool: Pool, settings: Settings) -> WorkerDeploymentConfig | None:
    """Give the Worker Deployment Version of a worker; None where builds are not told apart.

    Workflows are pinned: each ends on the build on which it began, and so do its activities. An
    engine's worker serves all builds: two beside one engine would publish against each other.
    """
    if settings.build_id is None or pool is Pool.ENGINE:
        return None
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(settings.deployment, settings.build_id),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )
