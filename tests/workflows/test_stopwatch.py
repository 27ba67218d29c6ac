"""The stopwatch of a workflow that is evicted in the middle of a phase."""

from datetime import UTC, datetime

import pytest
from temporalio import workflow

from loopwright.workflows.stopwatch import Stopwatch


def test_phase_of_an_evicted_workflow_ends_without_a_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as inside:
        inside.setattr(workflow, "now", lambda: datetime(2026, 1, 1, tzinfo=UTC))
        timing = Stopwatch().timing("rollout")
        timing.__enter__()
    timing.__exit__(GeneratorExit, GeneratorExit(), None)
