"""The lease of an engine, as a loop holds it."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

from temporalio import workflow
from temporalio.exceptions import ActivityError

from loopwright.contracts import activities, queues
from loopwright.contracts.configs import Profile
from loopwright.contracts.engines import (
    AcquireLeaseRequest,
    AcquireLeaseResult,
    LoadPolicyRequest,
    ReleaseLeaseRequest,
)
from loopwright.contracts.failures import EngineUnavailable
from loopwright.contracts.policies import CheckpointRef

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import is_unserved
    from loopwright.workflows.continuation import Continuation
    from loopwright.workflows.options import Patience, call

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 15.0


class EngineLease:
    """One engine serves one policy at a time; the holder is this workflow.

    A context manager, which gives the engine back at its end.
    """

    def __init__(
        self, engine: str, profile: Profile, *, is_known: bool, patience: Patience | None = None
    ) -> None:
        """Name the engine.

        Args:
            engine: its name.
            profile: of the loop.
            is_known: whether a worker of the engine has ever answered.
            patience: how long one that has not is waited for.
        """
        self._engine = engine
        self._profile: Profile = profile
        self._holder = workflow.info().workflow_id
        self._is_known = is_known
        self._patience = patience or Patience()
        self._continuation = Continuation()
        self.is_held = False

    async def __aenter__(self) -> Self:
        """Hold nothing yet."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the engine back, except where Python collects a workflow that its worker forgot.

        That happens outside of the workflow, which goes on elsewhere.
        """
        if kind is not GeneratorExit:
            await self.release()

    async def acquire(
        self,
        checkpoint: CheckpointRef,
        *,
        on_wait: Callable[[str], None],
        is_given_up: Callable[[], bool],
    ) -> None:
        """Wait until the engine is free, then publish ``checkpoint`` to it.

        Returns without the lease where the workflow is to continue as new, too.

        Args:
            checkpoint: the version to serve.
            on_wait: told what it waits for, after each try.
            is_given_up: asked before each try; True returns without the lease.

        Raises:
            EngineUnavailable: there has never been a worker of this engine.
        """
        pause = _FIRST_PAUSE_SECONDS
        unserved_seconds = 0.0
        while not (self.is_held or is_given_up() or self._is_cut_short()):
            answer = await self._ask(checkpoint, seconds=self._longest_wait(unserved_seconds))
            if answer is None:
                unserved_seconds += self._longest_wait(unserved_seconds)
                on_wait(f"no worker serves engine {self._engine}")
                self._refuse_unknown(unserved_seconds)
            elif answer.is_granted:
                self.is_held = True
                await self._publish(checkpoint)
            else:
                on_wait(f"engine {self._engine} is leased to {answer.holder}")
                await workflow.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _is_cut_short(self) -> bool:
        """Tell whether another run is to go on waiting; it takes the engine for known."""
        return self._is_known and self._continuation.is_due()

    async def _ask(self, checkpoint: CheckpointRef, *, seconds: float) -> AcquireLeaseResult | None:
        """Ask for the lease; None when no worker took the question in ``seconds``."""
        try:
            answer = await call(
                activities.acquire_lease,
                AcquireLeaseRequest(
                    engine=self._engine,
                    holder=self._holder,
                    model_fingerprint=checkpoint.model_fingerprint,
                ),
                summary=f"lease engine {self._engine}",
                queue=queues.engine_queue(self._engine),
                schedule_to_start=timedelta(seconds=seconds),
            )
        except ActivityError as error:
            if not is_unserved(error):
                raise
            return None
        self._is_known = True
        return answer

    def _longest_wait(self, unserved_seconds: float) -> float:
        """Give the wait of the next try: about as long as all before it."""
        first = self._patience.first_seconds
        return min(unserved_seconds + first, self._patience.longest_seconds)

    def _refuse_unknown(self, unserved_seconds: float) -> None:
        """Give up on an engine that may not exist: a misspelt one would be waited for for ever.

        The waits of tries are added up, not time: while the platform is off nobody makes any, and
        a loop goes on with it whenever it is back. An engine that has once answered is waited for
        without end.

        Raises:
            EngineUnavailable: the patience with it is at its end.
        """
        if self._is_known or unserved_seconds < self._patience.total_seconds:
            return
        raise EngineUnavailable(
            f"no worker serves engine {self._engine!r}, and none has come in "
            f"{self._patience.total_seconds:g} seconds; start one (`loopwright worker engine` with "
            f"LOOPWRIGHT_ENGINE={self._engine}), or name another under engines in the "
            f"configuration, and start the loop anew"
        )

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
