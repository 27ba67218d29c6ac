"""What the demo came to, for people and for programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from loopwright.cli.wording import describe_estimate
from loopwright.contracts.evaluations import Estimate, EvaluationResult
from loopwright.contracts.iterations import LoopResult


@dataclass(frozen=True, slots=True)
class DemoResult:
    """A finished demo."""

    loop: LoopResult
    loop_seconds: float
    report: Path
    web_ui: str

    @classmethod
    def of(cls, loop: LoopResult, *, loop_seconds: float, report: Path, web_ui: str) -> Self:
        """Gather the outcome."""
        return cls(loop=loop, loop_seconds=loop_seconds, report=report, web_ui=web_ui)

    @property
    def problem(self) -> str | None:
        """Say why the demo did not show what it is to show; None when it did."""
        if self.loop.num_lost:
            return f"{self.loop.num_lost} episodes have no recorded outcome"
        if self.loop.num_episodes and self._num_failed == self.loop.num_episodes:
            return f"all {self.loop.num_episodes} episodes failed; {self.report} says why"
        return None

    @property
    def _num_failed(self) -> int:
        evaluations = (self.loop.base_evaluation, self.loop.final_evaluation)
        evaluated = sum(found.num_failed for found in evaluations if found)
        return evaluated + sum(row.num_failed for row in self.loop.results)

    def as_json(self, *, wall_seconds: float) -> dict[str, Any]:
        """Give the fields that programs rely on; pass rates are of the first answer."""
        base, final = self.loop.base_evaluation, self.loop.final_evaluation
        return {
            "loop_id": self.loop.loop_id,
            "iterations": self.loop.num_iterations,
            "wall_seconds": round(wall_seconds, 3),
            "base_pass_rate": _mean(_first(base)),
            "final_pass_rate": _mean(_first(final)),
            "episodes": self.loop.num_episodes,
            "lost_episodes": self.loop.num_lost,
            "report": str(self.report),
            "outcome": self.loop.outcome,
            "base_pass_rate_interval": _interval(_first(base)),
            "final_pass_rate_interval": _interval(_first(final)),
            "base_pass_rate_after_second": _mean(_last(base)),
            "final_pass_rate_after_second": _mean(_last(final)),
            "failed_episodes": self._num_failed,
            "loop_seconds": round(self.loop_seconds, 3),
            "web_ui": self.web_ui,
        }

    def lines(self, *, wall_seconds: float) -> list[str]:
        """Say it to a person."""
        base, final = self.loop.base_evaluation, self.loop.final_evaluation
        lost = f", {self.loop.num_lost} LOST" if self.loop.num_lost else ", none lost"
        return [
            "",
            f"loop {self.loop.loop_id} {self.loop.outcome} after {self.loop.num_iterations} "
            f"iterations: {self.loop.num_episodes} episodes{lost}, "
            f"{self.loop_seconds:.0f} s (with the platform's start and stop {wall_seconds:.0f} s)",
            "pass rate on held-out tasks (95 % interval, clustered by task):",
            f"  {'':14} {'base policy':25} final policy",
            _row("first answer", _first(base), _first(final)),
            _row("in the end", _last(base), _last(final)),
            f"report: {self.report}",
        ]


def _row(name: str, base: Estimate | None, final: Estimate | None) -> str:
    return f"  {name:14} {describe_estimate(base):25} {describe_estimate(final)}"


def _first(evaluation: EvaluationResult | None) -> Estimate | None:
    return evaluation.first_pass_rate if evaluation else None


def _last(evaluation: EvaluationResult | None) -> Estimate | None:
    return evaluation.pass_rate if evaluation else None


def _mean(estimate: Estimate | None) -> float | None:
    return estimate.mean if estimate else None


def _interval(estimate: Estimate | None) -> list[float | None] | None:
    return [estimate.low, estimate.high] if estimate else None
