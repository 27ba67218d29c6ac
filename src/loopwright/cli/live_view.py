"""A loop's progress as it happens: a table on a terminal, lines elsewhere."""

import sys
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from loopwright.cli.wording import (
    after_iteration,
    describe_course,
    describe_evaluation,
    describe_phase,
    episodes_per_second,
    percent,
    seconds_of,
)
from loopwright.contracts.evaluations import EvaluationResult
from loopwright.contracts.iterations import OPEN_STATUSES, IterationResult, LoopProgress

PHASES = ("rollout", "batch", "train", "publish", "total")
_OTHER_LINES = 8
"""Lines of a terminal that the table leaves to the rest."""


class LiveView:
    """Shows each state of one loop; a context manager."""

    def __init__(self, *, stream: TextIO | None = None, console: Console | None = None) -> None:
        self._console = console or Console(
            file=stream or sys.stdout, highlight=False, soft_wrap=True
        )
        self._live = Live(console=self._console)
        self._is_terminal = self._console.is_terminal
        self._told: set[str] = set()
        self._last_phase = ""

    def __enter__(self) -> Self:
        """Take over the end of the terminal."""
        if self._is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave what was shown last."""
        if self._is_terminal:
            self._live.stop()

    async def follow(self, states: AsyncIterator[LoopProgress]) -> LoopProgress | None:
        """Show every state; give the last."""
        last = None
        async for last in states:
            self.show(last)
        return last

    def show(self, progress: LoopProgress) -> None:
        """Show one state."""
        if self._is_terminal:
            self._live.update(_picture(progress, self._max_rows), refresh=True)
        else:
            self._print_news(progress)

    @property
    def _max_rows(self) -> int:
        """Iterations that fit; older ones are left out."""
        return max(1, self._console.height - _OTHER_LINES)

    def _print_news(self, progress: LoopProgress) -> None:
        for line in describe_course(progress):
            if line not in self._told:
                self._told.add(line)
                self._console.print(line)
        phase = describe_phase(progress)
        is_plain = progress.phase == "iterating" and progress.status == "running"
        if phase != self._last_phase and not is_plain:
            self._last_phase = phase
            self._console.print(phase)


def _picture(progress: LoopProgress, max_rows: int) -> Group:
    lines: list[Table | Text | Spinner] = []
    if progress.base_evaluation:
        lines.append(Text(describe_evaluation("base policy", progress.base_evaluation)))
    if progress.results:
        lines.append(_table(progress.results[-max_rows:], progress.evaluations))
    if progress.evaluations:
        newest = progress.evaluations[-1]
        lines.append(Text(describe_evaluation(after_iteration(newest.iteration), newest)))
    if progress.final_evaluation:
        lines.append(Text(describe_evaluation("final policy", progress.final_evaluation)))
    phase = Text(describe_phase(progress), style="bold")
    lines.append(Spinner("dots", phase) if progress.status in OPEN_STATUSES else phase)
    return Group(*lines)


def _table(rows: tuple[IterationResult, ...], evaluations: tuple[EvaluationResult, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    columns = ("iteration", "first answer", "pass rate", "reward", "admitted", "episodes/s")
    heldout = ("held-out",) if evaluations else ()
    for name in (columns[0], *heldout, *columns[1:], *(f"{phase} s" for phase in PHASES)):
        table.add_column(name, justify="right", no_wrap=True)
    after = {found.iteration: found.first_pass_rate for found in evaluations}
    for row in rows:
        number, *others = _cells(row)
        rate = after.get(row.index)
        shown = (percent(rate.mean) if rate else "",) if evaluations else ()
        table.add_row(number, *shown, *others)
    return table


def _cells(row: IterationResult) -> list[str]:
    return [
        str(row.index) if row.outcome == "trained" else f"{row.index} {row.outcome}",
        percent(row.first_pass_rate),
        percent(row.pass_rate),
        "-" if row.mean_reward is None else f"{row.mean_reward:.3f}",
        f"{row.num_admitted}/{row.num_groups}",
        episodes_per_second(row),
        *(seconds_of(row, phase) for phase in PHASES),
    ]
