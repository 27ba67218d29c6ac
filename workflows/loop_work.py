"""What a loop awaits: under the lease of its engine, and until an update cuts it short."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError

from loopwright.contracts.failures import LoopError

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import failure_of, is_cancellation, raise_if_cancelled
    from loopwright.workflows.continuation import continue_as_new
    from loopwright.workflows.engine_lease import EngineLease
    from loopwright.workflows.loop_record import LoopRecord

Result = TypeVar("Result")


class LoopWork:
    """The work of one loop: activities and children, of which a failure ends the loop."""

    def __init__(self, record: LoopRecord) -> None:
        self._record = record
        self.lease = EngineLease(
            record.config.engines[0].name,
            record.config.profile,
            # A run is continued only after the engine's worker has answered.
            is_known=record.loop.state is not None,
        )
        self._running: asyncio.Task[Any] | None = None
        """What a stop cancels."""

    def cancel(self) -> None:
        """Cut short what is awaited, if anything is."""
        if self._running is not None:
            self._running.cancel()

    async def acquire_engine(self) -> bool:
        """Hold the engine's lease with the present version served; False when stopped."""
        if not self.lease.is_held:
            self._show_wait()
            acquired = self.lease.acquire(
                self._record.checkpoint,
                on_wait=self._show_wait,
                is_given_up=lambda: self._record.is_stopped,
            )
            await self.interruptible("lease of the engine", acquired)
            if not self.lease.is_held and not self._record.is_stopped:
                await self.continue_as_new()
        return self.lease.is_held and not self._record.is_stopped

    def _show_wait(self, detail: str = "") -> None:
        self._record.show("waiting_for_engine", detail)

    async def interruptible(
        self, name: str | None, work: Coroutine[Any, Any, Result]
    ) -> Result | None:
        """Await activities or children; None when an update stopped them. Failure ends the loop.

        Without a name, the work is that of iterations.
        """
        task: asyncio.Task[Result] = asyncio.create_task(work)
        outer, self._running = self._running, self._running or task
        try:
            result = await task
            # A child that was cancelled with this loop tells what it did, like a stopped one.
            raise_if_cancelled()
            return result
        except (ActivityError, ChildWorkflowError, LoopError, asyncio.CancelledError) as error:
            if is_cancellation(error):
                if self._record.is_stopped and workflow.cancellation_reason() is None:
                    return None
                raise
            raise self._failed(name or self._record.oldest_iteration, error) from error
        finally:
            self._running = outer

    def _failed(self, name: str, error: BaseException) -> ApplicationError:
        failure = failure_of(error)
        self._record.has_failed = True
        return ApplicationError(
            f"{name} failed: {failure.message}", type=failure.type, non_retryable=True
        )

    def refuse_foreign_stop(self, name: str, outcome: str) -> None:
        """End the loop when somebody else cancelled its child.

        The engine may serve anything then, so the next iteration cannot simply follow.
        """
        if outcome == "stopped" and not self._record.is_stopped:
            self._record.has_failed = True
            raise ApplicationError(
                f"{name} was cancelled by another hand than the loop's own; start the loop anew",
                type="Cancelled",
                non_retryable=True,
            )

    async def continue_as_new(self) -> None:
        """Begin another run with the state as it stands; the lease goes over to it.

        Returns where the loop was stopped meanwhile: the end is not for another run.
        """
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._record.is_stopped:
            return
        self.lease.hand_over()
        loop = self._record.loop
        continue_as_new(loop.model_copy(update={"state": self._record.state}))
