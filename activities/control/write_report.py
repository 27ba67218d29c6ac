"""control.write_report: the breakdown of an iteration or evaluation."""

import json
from typing import Any

import pandas as pd
from temporalio import activity

from loopwright.adapters.artifacts import fetch, keep
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.base import SCHEMA_VERSION
from loopwright.contracts.groups import GroupManifest
from loopwright.contracts.iterations import WriteReportRequest
from loopwright.core.protocols import ObjectStore


class WriteReport:
    """Turns group manifests into one table and its breakdowns."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="control.write_report")
    def write_report(self, request: WriteReportRequest) -> ArtifactRef:
        """Store the breakdown as JSON; the same request gives the same artifact."""
        manifests = [
            GroupManifest.model_validate_json(fetch(self._store, ref)) for ref in request.groups
        ]
        table = pd.DataFrame([row for manifest in manifests for row in _rows(manifest)])
        report = {
            "schema_version": SCHEMA_VERSION,
            "by_difficulty": _breakdown(table, ["environment", "difficulty"]),
            "by_verdict": _counts(table, "verdict"),
            "by_stop_reason": _counts(table, "stop_reason"),
            "by_failure": _counts(table[table["failure"] != ""], "failure") if len(table) else {},
            "components": _components(manifests),
        }
        return keep(
            self._store,
            json.dumps(report, sort_keys=True, allow_nan=False).encode(),
            prefix=request.prefix,
            name=f"{request.name}-report",
            suffix=".json",
            kind="report",
        )


def _rows(manifest: GroupManifest) -> list[dict[str, Any]]:
    return [
        {
            "environment": manifest.task.environment,
            "difficulty": manifest.task.difficulty,
            "verdict": str(episode.verdict),
            "stop_reason": str(episode.stop_reason),
            "failure": episode.failure.type if episode.failure else "",
            "is_valid": episode.reward is not None,
            "reward": episode.reward,
            "passed": episode.verdict == "pass",
            "first_passed": episode.first_answer_passed,
            "num_turns": episode.num_turns,
        }
        for episode in manifest.episodes
    ]


def _breakdown(table: pd.DataFrame, keys: list[str]) -> list[dict[str, Any]]:
    """Average the valid episodes of each combination of ``keys``."""
    if table.empty:
        return []
    valid = table[table["is_valid"]].astype({"reward": float})
    grouped = valid.groupby(keys, sort=True).agg(
        num_episodes=("reward", "size"),
        mean_reward=("reward", "mean"),
        pass_rate=("passed", "mean"),
        first_pass_rate=("first_passed", "mean"),
        mean_turns=("num_turns", "mean"),
    )
    rows: list[dict[str, Any]] = json.loads(grouped.reset_index().to_json(orient="records"))
    return rows


def _counts(table: pd.DataFrame, column: str) -> dict[str, int]:
    if table.empty:
        return {}
    return {str(name): int(count) for name, count in table[column].value_counts().items()}


def _components(manifests: list[GroupManifest]) -> dict[str, float]:
    """Average the valid scores of each component."""
    rows = [
        {"name": name, "score": component.score}
        for manifest in manifests
        for episode in manifest.episodes
        for name, component in episode.components.items()
        if component.valid
    ]
    if not rows:
        return {}
    means = pd.DataFrame(rows).groupby("name")["score"].mean()
    return {str(name): float(mean) for name, mean in means.items()}
