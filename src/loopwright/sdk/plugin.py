"""The one place that says how the platform speaks Temporal."""

import pydantic
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.plugin import SimplePlugin
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import SandboxImportNotificationPolicy

from loopwright.contracts.failures import LoopError

PASSTHROUGH = ("loopwright.contracts", "loopwright.core")
"""All that a workflow may import, besides the Temporal SDK's own list."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Build the runner that refuses any import outside ``PASSTHROUGH``."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(
        *PASSTHROUGH
    ).with_import_notification_policy(
        SandboxImportNotificationPolicy.WARN_ON_DYNAMIC_IMPORT
        | SandboxImportNotificationPolicy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH
    )
    return SandboxedWorkflowRunner(restrictions=restrictions)


def plugin(*, is_sandboxed: bool = False) -> SimplePlugin:
    """Give clients, workers, replayers and test servers the same converter and failure types.

    Args:
        is_sandboxed: check imports and calls of workflow code at run time. Tests of workflows do;
            production leaves it off, because it costs 12 to 20 ms of every workflow.
    """

    def runner(_existing: WorkflowRunner | None) -> WorkflowRunner:
        return workflow_runner() if is_sandboxed else UnsandboxedWorkflowRunner()

    return SimplePlugin(
        "loopwright",
        data_converter=pydantic_data_converter,
        workflow_runner=runner,
        workflow_failure_exception_types=[LoopError, pydantic.ValidationError],
    )
