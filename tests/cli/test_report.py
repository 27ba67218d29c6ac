"""A loop's report: one HTML document that needs nothing else."""

import dataclasses
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from loopwright.cli import report_figures
from loopwright.cli.report_html import LoopReport, render
from loopwright.contracts.configs import EnvironmentConfig, LoopConfig, PolicyConfig
from loopwright.contracts.evaluations import Estimate, EvaluationResult
from loopwright.contracts.iterations import IterationResult, LoopProgress
from loopwright.sdk import LoopDescription

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Elements(HTMLParser):
    """Collects elements and text, and sees that each element is closed."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def evaluation(rate: float, version: int, *, iteration: int | None = None) -> EvaluationResult:
    estimate = Estimate(mean=rate, low=rate - 0.05, high=rate + 0.05)
    return EvaluationResult(
        policy_version=version,
        iteration=version if iteration is None else iteration,
        num_tasks=128,
        samples=4,
        num_episodes=512,
        num_failed=0,
        num_lost=0,
        first_pass_rate=estimate,
        pass_rate=estimate,
        mean_reward=estimate,
        seconds=9.0,
    )


def iteration(index: int) -> IterationResult:
    return IterationResult(
        index=index,
        outcome="trained",
        policy_version=index,
        checkpoint=None,
        num_episodes=192,
        num_groups=24,
        num_admitted=20,
        pass_rate=0.5 + index / 100,
        first_pass_rate=0.4 + index / 100,
        mean_reward=0.6,
        seconds={"rollout": 6.0, "train": 2.0, "total": 8.5},
        metrics={"loss": 0.1, "mismatch_mean": 0.001},
    )


def breakdown(rate: float) -> dict[str, Any]:
    row = {"environment": "program_steps", "difficulty": 2.0, "num_episodes": 512}
    return {
        "by_difficulty": [{**row, "first_pass_rate": rate, "pass_rate": rate}],
        "by_verdict": {"pass": 300, "fail": 212},
    }


def report(*, num_iterations: int = 3, config: LoopConfig | None = None) -> LoopReport:
    rows = tuple(iteration(index) for index in range(1, num_iterations + 1))
    progress = LoopProgress(
        loop_id="first",
        uid="1f",
        phase="ended",
        iteration=num_iterations,
        num_requested=num_iterations,
        policy_version=num_iterations,
        results=rows,
        base_evaluation=evaluation(0.53, 0),
        final_evaluation=evaluation(0.84, 3),
        num_episodes=1600,
    )
    description = LoopDescription(
        loop_id="first",
        status="completed",
        started_at=datetime(2026, 1, 2, tzinfo=UTC),
        closed_at=datetime(2026, 1, 3, tzinfo=UTC),
        config=config or LoopConfig(),
        progress=progress,
    )
    return LoopReport(
        description=description,
        progress=progress,
        iterations=rows,
        base_breakdown=breakdown(0.53),
        final_breakdown=breakdown(0.84),
    )


def test_document_is_well_formed() -> None:
    parsed = Elements(render(report()))
    assert parsed.open == []
    assert {"html", "table", "svg", "figure"} <= {tag for tag, _ in parsed.found}


def test_document_needs_nothing_else() -> None:
    document = render(report())
    assert "://" not in document
    assert "<script" not in document
    for _, attributes in Elements(document).found:
        for name in ("href", "xlink:href", "src"):
            assert (attributes.get(name) or "#").startswith("#")


def test_ids_are_distinct_and_each_reference_finds_its_own() -> None:
    document = render(report())
    ids = [attributes["id"] for _, attributes in Elements(document).found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', document)) <= set(ids)


def test_base_and_final_policy_stand_side_by_side() -> None:
    text = Elements(render(report())).text
    assert "53.0 % (48.0 to 58.0)" in text
    assert "84.0 % (79.0 to 89.0)" in text
    assert "By difficulty" in text


def test_evaluations_between_iterations_are_in_the_table_and_the_curves() -> None:
    whole = dataclasses.replace(report(), evaluations=(evaluation(0.61, 1), evaluation(0.72, 2)))
    text = Elements(render(whole)).text
    assert "after iteration 1" in text
    assert "61.0 % (56.0 to 66.0)" in text
    assert "after iteration 2" in text
    assert "72.0 % (67.0 to 77.0)" in text


def test_curve_of_held_out_tasks_has_a_point_and_an_interval_for_each_evaluation() -> None:
    rows = report().iterations
    found = [evaluation(0.5 + index / 10, index) for index in (1, 2, 3)]
    two, three = (report_figures.first_pass_rates(rows, found[:number]) for number in (2, 3))
    assert "held-out tasks, 95 % interval" in three
    assert "held-out tasks, 95 % interval" not in report_figures.first_pass_rates(rows, [])
    # A point and both ends of its interval are a marker each.
    assert three.count("<use") - two.count("<use") == 3


def test_evaluation_of_one_task_has_a_point_without_an_interval() -> None:
    alone = Estimate(mean=0.5, low=None, high=None)
    one = evaluation(0.5, 1).model_copy(update={"first_pass_rate": alone, "pass_rate": None})
    figures = report_figures.first_pass_rates(report().iterations, [one])
    assert "held-out" in figures
    assert "held-out" not in report_figures.pass_rates(report().iterations, [one])


def test_what_others_wrote_is_escaped() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    config = LoopConfig(
        policy=PolicyConfig(model=hostile), environments=(EnvironmentConfig(id=hostile),)
    )
    document = render(report(config=config))
    assert hostile not in document
    assert hostile in Elements(document).text


def test_same_loop_gives_the_same_document() -> None:
    assert render(report()) == render(report())


@pytest.mark.parametrize("num_iterations", [0, 1, 60])
def test_loop_of_any_length_has_a_report(num_iterations: int) -> None:
    parsed = Elements(render(report(num_iterations=num_iterations)))
    assert parsed.open == []


def test_failure_is_shown() -> None:
    whole = report()
    description = whole.description.model_copy(update={"failure": "iteration 1 failed: <nan>"})
    text = Elements(render(LoopReport(description, whole.progress, whole.iterations))).text
    assert "iteration 1 failed: <nan>" in text
