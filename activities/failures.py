"""Exceptions of activity bodies become typed failures, once, for all pools."""

import logging
from typing import Any

import pydantic
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from loopwright.contracts.failures import LoopError

_logger = logging.getLogger(__name__)


class FailureInterceptor(Interceptor):
    """Gives each error of an activity its failure type, and says whether a retry can help."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the chain."""
        return _Inbound(next)


class _Inbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await super().execute_activity(input)
        except LoopError as error:
            raise ApplicationError(
                str(error), type=type(error).__name__, non_retryable=_is_final(error)
            ) from error
        except pydantic.ValidationError as error:
            raise ApplicationError(str(error), type="ContractError", non_retryable=True) from error


def _is_final(error: LoopError) -> bool:
    """Tell whether no retry can help: a retry policy knows no budget by type of failure."""
    if error.max_attempts is None:
        return not error.is_retryable
    return activity.info().attempt >= error.max_attempts
