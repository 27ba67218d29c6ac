"""A loop's report: gathered from Temporal and the store, written whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any

from loopwright.adapters.artifacts import fetch
from loopwright.cli.report_html import LoopReport, render
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.evaluations import EvaluationResult
from loopwright.contracts.failures import StoreError, UserError
from loopwright.core.protocols import ObjectStore
from loopwright.sdk import LoopHandle


def default_path(state: Path, loop_id: str) -> Path:
    """Name the file of a loop's report."""
    return state / "reports" / f"{loop_id}.html"


async def write_report(handle: LoopHandle, path: Path, *, store: ObjectStore | None) -> list[str]:
    """Write the report of a loop, running or ended; gives what could not be included.

    Raises:
        UserError: the file cannot be written.
        LoopError: the loop's progress cannot be read.
    """
    description = await handle.describe()
    progress = description.progress or await handle.progress()
    missing: list[str] = []
    report = LoopReport(
        description=description,
        progress=progress,
        iterations=await handle.iterations(),
        evaluations=await handle.evaluations(),
        base_breakdown=_breakdown(store, progress.base_evaluation, missing),
        final_breakdown=_breakdown(store, progress.final_evaluation, missing),
    )
    _write_whole(path, render(report))
    return missing


def _breakdown(
    store: ObjectStore | None, evaluation: EvaluationResult | None, missing: list[str]
) -> dict[str, Any] | None:
    """Fetch the breakdown of an evaluation; None when there is none to be had."""
    if evaluation is None or evaluation.report is None:
        return None
    if store is None:
        missing.append("the object store cannot be reached: the report has no breakdowns")
        return None
    return _fetched(store, evaluation.report, missing)


def _fetched(store: ObjectStore, ref: ArtifactRef, missing: list[str]) -> dict[str, Any] | None:
    try:
        breakdown: dict[str, Any] = json.loads(fetch(store, ref))
    except StoreError as error:
        missing.append(f"a breakdown is left out: {error}")
        return None
    return breakdown


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"cannot write the report to {path}: {error.strerror}") from error
