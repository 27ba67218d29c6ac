"""What the Web UI shows of a running workflow: its progress as a few lines of Markdown.

Every text is bounded, whatever the progress holds, and nothing of a failure's message is Markdown.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from loopwright.contracts import ids
from loopwright.contracts.iterations import IterationResult, LoopProgress
from loopwright.contracts.progress import GroupProgress, IterationProgress, Trouble

MAX_TROUBLES = 10
MAX_ROWS = 5
_MAX_REASON = 200
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#|!~&])")


def of_loop(progress: LoopProgress, *, namespace: str) -> str:
    """Show a loop: phase, what is done, and its newest iterations with links to them."""
    asked = "as many as asked for" if progress.num_requested is None else progress.num_requested
    newest = progress.results[-MAX_ROWS:]
    return _paragraphs(
        f"**{progress.phase.replace('_', ' ')}** {_plain(progress.detail)}".rstrip(),
        f"{progress.num_done} of {asked} iterations done, policy version "
        f"{progress.policy_version}, {progress.num_episodes} episodes, {progress.num_lost} lost",
        _table(progress.loop_id, newest, namespace) if newest else "",
    )


def of_iteration(progress: IterationProgress, *, namespace: str) -> str:
    """Show an iteration: phase, counts by state, rate, and its newest losses with links."""
    rate = progress.episodes_per_minute
    silent = progress.silent_seconds
    return _paragraphs(
        f"**Iteration {progress.index}**: {_plain(progress.phase)}",
        _counts("Groups", progress.groups),
        _counts("Episodes", progress.episodes) + ("" if rate is None else f"; {rate:.1f} a minute"),
        ""
        if silent is None
        else f"**Nothing has ended for {silent:g} seconds.** Look at the workflows under way, or "
        "at `loopwright status`.",
        _troubles(progress.troubles, namespace),
    )


def of_group(progress: GroupProgress, *, namespace: str) -> str:
    """Show a group: its episodes by state, and the newest failures with links."""
    return _paragraphs(
        f"**Task {_plain(progress.task_id)}**",
        _counts("Episodes", progress.episodes),
        _troubles(progress.troubles, namespace),
    )


def _table(loop_id: str, rows: Iterable[IterationResult], namespace: str) -> str:
    head = "| iteration | outcome | first answer | admitted | failed | episodes a minute |"
    lines = [head, "|--:|---|--:|--:|--:|--:|"]
    for row in rows:
        path = ids.iteration_path(ids.loop_workflow_id(loop_id), row.index)
        rate, seconds = row.first_pass_rate, row.seconds.get("rollout", 0.0)
        cells = (
            _link(str(row.index), path, namespace),
            row.outcome.replace("_", " "),
            "-" if rate is None else f"{100 * rate:.1f} %",
            f"{row.num_admitted}/{row.num_groups}",
            str(row.num_failed),
            f"{60 * row.num_episodes / seconds:.1f}" if seconds else "-",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _counts(name: str, counts: Mapping[str, int]) -> str:
    known = [f"{count} {state}" for state, count in counts.items() if count]
    return f"{name}: {', '.join(known)}" if known else ""


def _troubles(troubles: Iterable[Trouble], namespace: str) -> str:
    lines = [
        f"- {_link(each.workflow_id, each.workflow_id, namespace)}: {_plain(each.reason)}"
        for each in list(troubles)[-MAX_TROUBLES:]
    ]
    return "\n".join(["Recent failures:", "", *lines]) if lines else ""


def _link(text: str, workflow_id: str, namespace: str) -> str:
    """Link to a workflow as the Web UI names its pages."""
    target = f"/namespaces/{quote(namespace, safe='')}/workflows/{quote(workflow_id, safe='')}"
    return f"[{_plain(text)}]({target})"


def _plain(text: str) -> str:
    """Make one line of text that Markdown shows as it is."""
    line = " ".join(text.split())
    shown = line if len(line) <= _MAX_REASON else f"{line[: _MAX_REASON - 3]}..."
    return _MARKUP.sub(r"\\\1", shown)


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
