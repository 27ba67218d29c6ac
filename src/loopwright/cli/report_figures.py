"""The figures of a report, as SVG that stands inside an HTML document."""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from loopwright.contracts.evaluations import Estimate, EvaluationResult
from loopwright.contracts.iterations import IterationResult

PHASES = ("rollout", "batch", "train", "publish")
COLOURS = ("#2563eb", "#d97706", "#059669", "#7c3aed", "#dc2626")
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "axes.prop_cycle": cycler(color=COLOURS),
}
_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def first_pass_rates(
    rows: Sequence[IterationResult], evaluations: Sequence[EvaluationResult]
) -> str:
    """Draw the pass rate of first answers by iteration, on training and on held-out tasks."""
    training = [row.first_pass_rate for row in rows]
    heldout = [(found.iteration, found.first_pass_rate) for found in evaluations]
    return _rates("first-pass-rates", rows, training, heldout)


def pass_rates(rows: Sequence[IterationResult], evaluations: Sequence[EvaluationResult]) -> str:
    """Draw the pass rate of last answers by iteration, on training and on held-out tasks."""
    training = [row.pass_rate for row in rows]
    heldout = [(found.iteration, found.pass_rate) for found in evaluations]
    return _rates("pass-rates", rows, training, heldout)


def rewards(rows: Sequence[IterationResult]) -> str:
    """Draw the mean reward by iteration."""
    return _figure(
        "rewards", lambda axes: _line(axes, rows, [row.mean_reward for row in rows], "mean reward")
    )


def metric(rows: Sequence[IterationResult], *names: str) -> str:
    """Draw metrics of the update by iteration."""

    def draw(axes: Axes) -> None:
        for name in names:
            _line(axes, rows, [row.metrics.get(name) for row in rows], name.replace("_", " "))
        _legend(axes)

    return _figure("-".join(names), draw)


def seconds(rows: Sequence[IterationResult]) -> str:
    """Draw where the wall time of each iteration went."""

    def draw(axes: Axes) -> None:
        below = [0.0] * len(rows)
        for phase in PHASES:
            heights = [row.seconds.get(phase, 0.0) for row in rows]
            axes.bar([row.index for row in rows], heights, bottom=below, label=phase)
            below = [low + height for low, height in zip(below, heights, strict=True)]
        _legend(axes)

    return _figure("seconds", draw)


def _rates(
    name: str,
    rows: Sequence[IterationResult],
    training: Sequence[float | None],
    heldout: Sequence[tuple[int, Estimate | None]],
) -> str:
    """Set the curve of held-out tasks, with its intervals, beside that of training tasks."""

    def draw(axes: Axes) -> None:
        _line(axes, rows, training, "training tasks")
        known = [(iteration, rate) for iteration, rate in heldout if rate]
        if known:
            axes.errorbar(
                [iteration for iteration, _ in known],
                [rate.mean for _, rate in known],
                yerr=list(zip(*(_reach(rate) for _, rate in known), strict=True)),
                marker="s",
                markersize=4,
                capsize=3,
                label="held-out tasks, 95 % interval",
            )
        axes.set_ylim(0, 1)
        _legend(axes)

    return _figure(name, draw)


def _reach(rate: Estimate) -> tuple[float, float]:
    """Say how far the interval reaches below and above the mean."""
    low = rate.mean if rate.low is None else rate.low
    high = rate.mean if rate.high is None else rate.high
    return max(0.0, rate.mean - low), max(0.0, high - rate.mean)


def _line(
    axes: Axes, rows: Sequence[IterationResult], values: Sequence[float | None], label: str
) -> None:
    numbers = [float("nan") if value is None else value for value in values]
    axes.plot([row.index for row in rows], numbers, marker="o", markersize=3, label=label)


def _legend(axes: Axes) -> None:
    """Name the lines above the plot, where they hide nothing."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4, frameon=False)


def _figure(name: str, draw: Callable[[Axes], object]) -> str:
    """Draw one figure; the same data gives the same text."""
    style: Any = {**_STYLE, "svg.hashsalt": f"loopwright {name}"}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(5.2, 2.8), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set_xlabel("iteration")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata=_METADATA)
    return _inline(target.getvalue(), name)


def _inline(svg: str, name: str) -> str:
    """Keep the element alone, with ids that no other figure of the document has."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    return re.sub(r"url\(#", f"url(#{name}-", svg)
