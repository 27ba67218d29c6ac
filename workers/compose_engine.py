"""What an engine worker is made of: the lease of its engine, and the keeper of its server."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from loopwright.activities.engine.acquire_lease import AcquireLease
from loopwright.activities.engine.keeper import EngineKeeper
from loopwright.activities.engine.leases import Leases
from loopwright.activities.engine.load_policy import LoadPolicy
from loopwright.activities.engine.policy_directories import PolicyDirectories
from loopwright.activities.engine.release_lease import ReleaseLease
from loopwright.adapters.checkpoint_directories import materialise_policy
from loopwright.adapters.model_fingerprint import model_fingerprint
from loopwright.adapters.vllm_admin import VllmAdmin
from loopwright.contracts.failures import LoopUnavailable, UserError
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store


async def compose(
    settings: Settings, client: Client, stack: AsyncExitStack
) -> list[Callable[..., Any]]:
    """Build the activities of the engine pool; the stack ends the watch over the server."""
    admin = await stack.enter_async_context(
        VllmAdmin(_engine_url(settings), api_key=settings.engine_api_key)
    )
    leases = Leases(
        settings.state_dir / "engines" / f"{settings.engine}.json",
        is_running=partial(is_running, client),
    )
    directories = PolicyDirectories(
        settings.state_dir / "policies" / settings.engine,
        partial(materialise_policy, open_store(settings)),
    )
    keeper = await stack.enter_async_context(EngineKeeper(admin, leases, directories))
    model = settings.engine_model
    lease = AcquireLease(
        leases, model=model, model_fingerprint=model_fingerprint(model) if model else ""
    )
    return [
        lease.acquire_lease,
        ReleaseLease(leases).release_lease,
        LoadPolicy(keeper).load_policy,
    ]


async def is_running(client: Client, workflow_id: str) -> bool:
    """Tell whether the workflow of an id is running.

    Raises:
        LoopUnavailable: the server does not answer.
    """
    try:
        description = await client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise LoopUnavailable(f"no answer about {workflow_id}: {error.message}") from error
    return description.status is WorkflowExecutionStatus.RUNNING


def _engine_url(settings: Settings) -> str:
    try:
        return settings.engine_urls[settings.engine]
    except KeyError:
        raise UserError(
            f"LOOPWRIGHT_ENGINE_URLS names no engine {settings.engine!r} "
            f"(it names: {', '.join(settings.engine_urls) or 'none'})"
        ) from None
