"""Reads the private report of the script around a command: hostile, so it only ever gives less.

Not covered: a command that writes a report itself. It can move its own session, and hide or
invent background processes in the words it will read; neither its exit code nor its files.
"""

import re
from dataclasses import dataclass

from loopwright.environments.clean_text import clean
from loopwright.environments.shell_session import WORKSPACE, ShellSession

_STAT = re.compile(r"(\d+) \((.*)\) (?:\S (\d+) )?", re.DOTALL)
_INIT = 1
MAX_REPORT_BYTES = 1 << 20
"""Length that is read: far more than a session can carry over."""


@dataclass(frozen=True, slots=True)
class ShellReport:
    """What a report says."""

    is_started: bool
    """Whether the script ran at all."""
    session: ShellSession
    """The session after the command; as before when the command's shell could not tell."""
    strays: tuple[str, ...] = ()
    """Names of the processes that were left running."""
    failed_services: tuple[str, ...] = ()
    """What is wrong with services that did not get ready, in words."""
    notes: tuple[str, ...] = ()
    """What of the session was not kept, in words."""


def read_report(data: bytes, before: ShellSession) -> ShellReport:
    """Read a report of a command that began in the session ``before``; what is too long is cut."""
    records = _Records()
    for token in data[:MAX_REPORT_BYTES].split(b"\0"):
        records.feed(token)
    session, notes = _session(records, before)
    if len(data) > MAX_REPORT_BYTES:
        notes = (*notes, "what its shell told was too long to be read to the end")
    return ShellReport(
        is_started=data.startswith(b":start "),
        session=session,
        strays=_strays(clean(records.last(b"strays")), script=records.last(b"start")),
        failed_services=tuple(
            problem for record in records.all(b"service") if (problem := _problem(clean(record)))
        ),
        notes=notes,
    )


class _Records:
    """Records ``:KEY VALUE``, and variables ``NAME=VALUE`` in the section where they stood."""

    def __init__(self) -> None:
        self._records: dict[bytes, list[bytes]] = {}
        self._sections: dict[bytes, dict[bytes, bytes]] = {}
        self._open: dict[bytes, bytes] = {}

    def feed(self, token: bytes) -> None:
        if not token.startswith(b":"):
            name, _, value = token.partition(b"=")
            self._open[name] = value
            return
        key, _, value = token[1:].partition(b" ")
        self._records.setdefault(key, []).append(value)
        self._open = self._sections[key] = {}

    def all(self, key: bytes) -> list[bytes]:
        return self._records.get(key, [])

    def section(self, key: bytes) -> dict[bytes, bytes]:
        return self._sections.get(key, {})

    def last(self, key: bytes) -> bytes:
        return self.all(key)[-1] if self.all(key) else b""


def _session(records: _Records, before: ShellSession) -> tuple[ShellSession, tuple[str, ...]]:
    session, notes = before, []
    if records.all(b"lost"):
        notes.append(f"the working directory {before.cwd} is gone, back in {WORKSPACE}")
        session = session.model_copy(update={"cwd": WORKSPACE})
    if records.all(b"cwd"):
        moved = session.moved(records.last(b"cwd"))
        if moved is None:
            notes.append(f"the name of the working directory cannot be kept, back in {session.cwd}")
        session = moved or session
    if records.all(b"end"):
        given, exported = records.section(b"before"), records.section(b"after")
        session, left_behind = session.exported(given, exported)
        if left_behind:
            notes.append(f"not carried over, too long or not UTF-8: {_few(left_behind)}")
    return session, tuple(notes)


def _problem(record: str) -> str:
    """Say what is wrong with a service; empty when it is ready."""
    name, _, state = record.partition(" ")
    if state == "ready":
        return ""
    how = "was not ready in time" if state == "late" else f"ended with exit code {state}"
    return f"service {name} {how}, see /tmp/{name}.log while a command runs"


def _strays(lines: str, *, script: bytes) -> tuple[str, ...]:
    """Name the processes of the command's own: not those that a service started meanwhile."""
    found = [match for line in lines.split("\n") if (match := _STAT.match(line))]
    parents = {match[1]: match[3] for match in found}
    orphaned = {str(_INIT), script.decode("ascii", "replace"), None}

    answers: dict[str | None, bool] = {}

    def is_stray(pid: str | None) -> bool:
        way = []
        while pid in parents and pid not in answers:
            answers[pid] = True  # unless the way leads elsewhere than back here
            way.append(pid)
            pid = parents[pid]
        answer = answers.get(pid, pid in orphaned)
        answers.update(dict.fromkeys(way, answer))
        return answer

    return tuple(sorted(match[2] for match in found if is_stray(match[1])))


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
