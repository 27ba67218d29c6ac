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


def pass_rates(rows: Sequence[IterationResult]) -> str:
    """Draw the pass rates on training tasks by iteration."""

    def draw(axes: Axes) -> None:
        _line(axes, rows, [row.first_pass_rate for row in rows], "first answer")
        _line(axes, rows, [row.pass_rate for row in rows], "in the end")
        axes.set_ylim(0, 1)
        _legend(axes)

    return _figure("pass-rates", draw)


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
