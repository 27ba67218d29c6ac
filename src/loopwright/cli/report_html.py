"""A loop's report as one HTML document: no scripts, nothing loaded from elsewhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import yaml

from loopwright.cli import report_figures
from loopwright.cli.report_style import STYLE
from loopwright.cli.wording import describe_estimate, episodes_per_second, percent, seconds_of
from loopwright.contracts.evaluations import EvaluationResult
from loopwright.contracts.iterations import IterationResult, LoopProgress
from loopwright.sdk import LoopDescription

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class LoopReport:
    """All that a report shows."""

    description: LoopDescription
    progress: LoopProgress
    iterations: tuple[IterationResult, ...]
    base_breakdown: dict[str, Any] | None = None
    """Content of the artifact that ``EvaluationResult.report`` names."""
    final_breakdown: dict[str, Any] | None = None
    evaluations: tuple[EvaluationResult, ...] = ()
    """Those between iterations."""

    def all_evaluations(self) -> list[tuple[str, EvaluationResult]]:
        """Name each evaluation, in their order."""
        between = [(f"after iteration {found.iteration}", found) for found in self.evaluations]
        base, final = self.progress.base_evaluation, self.progress.final_evaluation
        found = [("base", base), *between, ("final", final)]
        return [(name, evaluation) for name, evaluation in found if evaluation]


def render(report: LoopReport) -> str:
    """Write the document; the same report gives the same text."""
    title = f"Loop {report.description.loop_id}"
    sections = (
        _summary(report),
        _evaluations(report),
        _difficulties(report),
        _outcomes(report),
        _curves(report),
        _iterations(report.iterations),
        _configuration(report.description),
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _summary(report: LoopReport) -> str:
    description, progress = report.description, report.progress
    closed = f"{description.closed_at:%Y-%m-%d %H:%M:%S} UTC" if description.closed_at else "-"
    rows = [
        ("status", description.status),
        ("started", f"{description.started_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("ended", closed),
        ("iterations", str(len(report.iterations))),
        ("policy", f"{description.config.policy.model}, version {progress.policy_version}"),
        ("episodes", f"{progress.num_episodes}, {progress.num_lost} lost"),
    ]
    failure = f'<p class="failure">{escape(description.failure)}</p>' if description.failure else ""
    return failure + _table((), rows)


def _evaluations(report: LoopReport) -> str:
    columns = ("policy", "version", "first answer", "in the end", "reward", "tasks", "failed")
    rows = [_evaluation_row(name, evaluation) for name, evaluation in report.all_evaluations()]
    if not rows:
        return ""
    note = "<p>Share of held-out tasks passed, with 95 % intervals clustered by task.</p>"
    return f"<h2>Evaluations</h2>{note}{_table(columns, rows)}"


def _evaluation_row(name: str, evaluation: EvaluationResult) -> Row:
    reward = evaluation.mean_reward
    return (
        name,
        str(evaluation.policy_version),
        describe_estimate(evaluation.first_pass_rate),
        describe_estimate(evaluation.pass_rate),
        "-" if reward is None else f"{reward.mean:.3f}",
        f"{evaluation.num_tasks} x {evaluation.samples}",
        str(evaluation.num_failed),
    )


def _difficulties(report: LoopReport) -> str:
    """Set base against final policy by environment and difficulty."""
    base, final = (
        _by_difficulty(found) for found in (report.base_breakdown, report.final_breakdown)
    )
    keys = sorted(base.keys() | final.keys())
    if not keys:
        return ""
    columns = ("environment", "difficulty", "episodes", "base: first answer", "final: first answer")
    rows = [
        (
            environment,
            f"{difficulty:g}",
            str((final.get(key) or base[key])["num_episodes"]),
            percent(base.get(key, {}).get("first_pass_rate")),
            percent(final.get(key, {}).get("first_pass_rate")),
        )
        for key in keys
        for environment, difficulty in (key,)
    ]
    return f"<h2>By difficulty</h2>{_table(columns, rows)}"


def _by_difficulty(breakdown: dict[str, Any] | None) -> dict[tuple[str, float], dict[str, Any]]:
    rows = breakdown["by_difficulty"] if breakdown else []
    return {(row["environment"], float(row["difficulty"])): row for row in rows}


def _outcomes(report: LoopReport) -> str:
    """Count verdicts, stop reasons and failures of base and final policy."""
    base, final = report.base_breakdown or {}, report.final_breakdown or {}
    rows = [
        (
            kind.removeprefix("by_").replace("_", " "),
            name,
            _count(base, kind, name),
            _count(final, kind, name),
        )
        for kind in ("by_verdict", "by_stop_reason", "by_failure")
        for name in sorted(base.get(kind, {}).keys() | final.get(kind, {}).keys())
    ]
    if not rows:
        return ""
    return f"<h2>Outcomes of episodes</h2>{_table(('', '', 'base', 'final'), rows)}"


def _count(breakdown: dict[str, Any], kind: str, name: str) -> str:
    return str(breakdown.get(kind, {}).get(name, 0))


def _curves(report: LoopReport) -> str:
    rows = report.iterations
    if not rows:
        return ""
    evaluations = [evaluation for _, evaluation in report.all_evaluations()]
    figures = [
        ("Pass rate of the first answer", report_figures.first_pass_rates(rows, evaluations)),
        ("Pass rate in the end", report_figures.pass_rates(rows, evaluations)),
        ("Mean reward", report_figures.rewards(rows)),
        ("Seconds by phase", report_figures.seconds(rows)),
    ]
    known = {name for row in rows for name in row.metrics}
    for title, names in _METRICS:
        present = [name for name in names if name in known]
        if present:
            figures.append((title, report_figures.metric(rows, *present)))
    inner = "".join(
        f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>" for title, svg in figures
    )
    return f'<h2>Curves</h2><div class="figures">{inner}</div>'


_METRICS = (
    ("Loss", ("loss",)),
    ("Entropy", ("entropy",)),
    ("Mismatch of engine and trainer", ("mismatch_mean",)),
    ("Change of the policy", ("kl",)),
    ("Clipped tokens", ("clip_fraction",)),
    ("Norm of the gradient", ("gradient_norm",)),
)


def _iterations(rows: Sequence[IterationResult]) -> str:
    if not rows:
        return ""
    phases = (*report_figures.PHASES, "total")
    columns = (
        *("iteration", "outcome", "version", "first answer", "in the end", "reward", "admitted"),
        *("episodes", "failed", "cancelled", "episodes/s"),
        *(f"{phase} s" for phase in phases),
    )
    cells = [(*_iteration_row(row), *(seconds_of(row, phase) for phase in phases)) for row in rows]
    return f"<h2>Iterations</h2>{_table(columns, cells)}"


def _iteration_row(row: IterationResult) -> Row:
    return (
        str(row.index),
        row.outcome.replace("_", " "),
        str(row.policy_version),
        percent(row.first_pass_rate),
        percent(row.pass_rate),
        "-" if row.mean_reward is None else f"{row.mean_reward:.3f}",
        f"{row.num_admitted}/{row.num_groups}",
        str(row.num_episodes),
        str(row.num_failed),
        str(row.num_cancelled),
        episodes_per_second(row),
    )


def _configuration(description: LoopDescription) -> str:
    text = yaml.safe_dump(
        description.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True
    )
    return f"<h2>Configuration</h2><pre>{escape(text)}</pre>"


def _table(columns: Row, rows: Iterable[Row]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    head = f"<thead><tr>{head}</tr></thead>" if columns else ""
    return f'<div class="scroll"><table>{head}<tbody>\n{body}</tbody></table></div>\n'
