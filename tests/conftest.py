"""Fixtures that several folders use."""

import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from loopwright.embedded.temporal_settings import search_attributes
from loopwright.sdk.plugin import plugin


def binary(name: str) -> str:
    """Find a program that a Python package of this environment ships."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found, f"{name} is not installed; run `make setup`"
    return found


@pytest.fixture
async def temporal() -> AsyncIterator[WorkflowEnvironment]:
    """Give the real Temporal server, with a clock of its own for each workflow."""
    arguments = ["--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"]
    arguments += ["--dynamic-config-value", "history.transferProcessorMaxPollRPS=200"]
    arguments += ["--dynamic-config-value", 'history.workflowIdReuseMinimalInterval="0s"']
    # Timers and pauses between attempts end when they are due, not up to a second later.
    arguments += ["--dynamic-config-value", 'history.timerProcessorMaxTimeShift="1ms"']
    for setting in ("system.enableCancelActivityWorkerCommand", "frontend.WorkerCommandsEnabled"):
        arguments += ["--dynamic-config-value", f"{setting}=true"]
    for name, kind in search_attributes().items():
        arguments += ["--search-attribute", f"{name}={kind}"]
    async with await WorkflowEnvironment.start_time_skipping_v2(
        dev_server_existing_path=binary("temporal"),
        dev_server_extra_args=arguments,
        plugins=[plugin(is_sandboxed=True)],
    ) as environment:
        yield environment
