"""The lease of an engine, as a loop holds it."""

import asyncio
from collections.abc import Callable

from temporalio import workflow
from temporalio.exceptions import ActivityError

from loopwright.contracts import activities, queues
from loopwright.contracts.configs import Profile
from loopwright.contracts.engines import (
    AcquireLeaseRequest,
    LoadPolicyRequest,
    ReleaseLeaseRequest,
)
from loopwright.contracts.policies import CheckpointRef

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.options import call

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 15.0


def is_history_full() -> bool:
    """Tell whether the workflow is to continue as new."""
    return workflow.info().is_continue_as_new_suggested()


class EngineLease:
    """One engine serves one policy at a time; the holder is this workflow."""

    def __init__(self, engine: str, profile: Profile) -> None:
        self._engine = engine
        self._profile: Profile = profile
        self._holder = workflow.info().workflow_id
        self.is_held = False

    async def acquire(
        self,
        checkpoint: CheckpointRef,
        *,
        on_wait: Callable[[str], None],
        is_given_up: Callable[[], bool],
    ) -> None:
        """Wait until the engine is free, then publish ``checkpoint`` to it.

        Returns without the lease when the wait has filled the workflow's history, too.

        Args:
            checkpoint: the version to serve.
            on_wait: told the present holder each time the lease is refused.
            is_given_up: asked before each try; True returns without the lease.
        """
        pause = _FIRST_PAUSE_SECONDS
        while not (self.is_held or is_given_up() or is_history_full()):
            answer = await call(
                activities.acquire_lease,
                AcquireLeaseRequest(
                    engine=self._engine,
                    holder=self._holder,
                    model_fingerprint=checkpoint.model_fingerprint,
                ),
                summary=f"lease engine {self._engine}",
                queue=queues.engine_queue(self._engine),
            )
            if answer.is_granted:
                self.is_held = True
                await self._publish(checkpoint)
            else:
                on_wait(answer.holder)
                await workflow.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def hand_over(self) -> None:
        """Leave the lease to the next run of the same workflow."""
        self.is_held = False

    async def release(self) -> None:
        """Give the engine back, also while the workflow is being cancelled."""
        if self.is_held:
            self.is_held = False
            try:
                await asyncio.shield(asyncio.ensure_future(self._release()))
            except ActivityError as error:
                # The lease is void anyway once this workflow has closed.
                workflow.logger.warning("engine %s not given back: %s", self._engine, error.cause)

    async def _publish(self, checkpoint: CheckpointRef) -> None:
        await call(
            activities.load_policy,
            LoadPolicyRequest(engine=self._engine, holder=self._holder, checkpoint=checkpoint),
            summary=f"publish {checkpoint.policy.label}",
            queue=queues.engine_queue(self._engine),
            profile=self._profile,
        )

    async def _release(self) -> None:
        await call(
            activities.release_lease,
            ReleaseLeaseRequest(engine=self._engine, holder=self._holder),
            summary=f"give back engine {self._engine}",
            queue=queues.engine_queue(self._engine),
        )
