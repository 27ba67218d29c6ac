"""How a command finds the platform: by the environment, or the one on this machine.

The clients of Temporal and S3 take long to load, and are only once there is a platform to ask.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from loopwright.cli.options import ADDRESS
from loopwright.contracts.failures import StoreError, UserError
from loopwright.embedded.stack import Stack, stack_environment
from loopwright.workers.settings import Settings

if TYPE_CHECKING:
    from loopwright.adapters.s3_store import S3ObjectStore
    from loopwright.sdk import LoopClient

logger = logging.getLogger(__name__)


async def connect(state: Path) -> "LoopClient":
    """Connect to the Temporal server of the platform.

    Raises:
        UserError: there is no platform, or nothing answers.
    """
    settings = platform_settings(state)
    from loopwright.sdk import LoopClient

    return await LoopClient.connect(
        settings.temporal_address, namespace=settings.temporal_namespace
    )


def platform_settings(state: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings: ``LOOPWRIGHT_*`` first, then those of the platform in ``state``.

    Raises:
        UserError: neither names a Temporal server.
    """
    stack = Stack(state).info()
    if stack is None and not environment.get(ADDRESS):
        raise UserError(
            f"no platform runs in {state}: start one with `loopwright up`, "
            f"or set {ADDRESS} to a Temporal server's HOST:PORT"
        )
    ours = {} if stack is None or environment.get(ADDRESS) else stack_environment(stack)
    return Settings.from_environment({**ours, **environment})


def known_engines(state: Path, environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Name the engines of the platform in ``state``; empty where another one is asked."""
    stack = Stack(state).info()
    if stack is None or environment.get(ADDRESS):
        return frozenset()
    return frozenset(Settings.from_environment(stack_environment(stack)).engine_urls)


def store_of(state: Path) -> "S3ObjectStore | None":
    """Open the object store of the platform; None when it cannot be reached."""
    settings = platform_settings(state)
    try:
        return open_store(settings)
    except StoreError as error:
        logger.warning("the object store cannot be reached: %s", error)
        return None


def open_store(settings: Settings) -> "S3ObjectStore":
    """Open the object store for somebody who waits: one that is down is soon given up.

    Raises:
        StoreError: the store cannot be reached or refuses.
    """
    from loopwright.adapters.s3_store import BRIEF
    from loopwright.workers import stores

    return stores.open_store(settings, patience=BRIEF)
