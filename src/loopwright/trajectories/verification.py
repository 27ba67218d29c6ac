"""Recorded commands, run again and compared in every digest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopwright.contracts.commands import STDIN_FILE, CommandOutcome, CommandRecord, Part
from loopwright.contracts.failures import ArtifactDamaged, LoopError, StoreError
from loopwright.contracts.turns import TurnRecord
from loopwright.contracts.workspaces import CommandRequest
from loopwright.core.outcomes import differing_parts, outcome_of
from loopwright.core.protocols import Blobs, Jail


@dataclass(frozen=True, slots=True)
class CommandCheck:
    """What running one recorded command again came to."""

    turn: int | None
    """Index of its turn, from 0; None for a command of grading."""
    index: int
    """Index of the command in its turn or grading, from 0."""
    record: CommandRecord
    outcomes: tuple[CommandOutcome, ...]
    """One for each run; fewer than asked for where there is a problem."""
    problem: str = ""
    """Why it could not be run; empty when it was."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """What differed in any run."""
        found = {part for outcome in self.outcomes for part in self._parts(outcome)}
        return tuple(part for part in Part if part in found)

    @property
    def num_differing(self) -> int:
        """Runs in which something differed."""
        return sum(bool(self._parts(outcome)) for outcome in self.outcomes)

    @property
    def is_suspect(self) -> bool:
        """Whether the host starved the command of processor time in any run, the recorded too."""
        return any(outcome.is_suspect for outcome in (self.record.outcome, *self.outcomes))

    @property
    def is_equal(self) -> bool:
        """Whether it was run as often as asked for, and nothing differed."""
        return not self.problem and not self.parts

    def _parts(self, outcome: CommandOutcome) -> tuple[Part, ...]:
        return differing_parts(self.record.outcome, outcome)


def check_commands(
    turns: Sequence[TurnRecord],
    *,
    grading: Sequence[CommandRecord] = (),
    jail: Jail,
    blobs: Blobs,
    num_runs: int = 1,
) -> Iterator[CommandCheck]:
    """Run every command of turns and grading again, in fresh jails, one after the other.

    Raises:
        StoreError: the store failed; what it does not have is a problem of its command alone.
    """
    groups = [(turn.index, turn.commands) for turn in turns]
    for turn, commands in (*groups, (None, grading)):
        for index, record in enumerate(commands):
            outcomes: list[CommandOutcome] = []
            problem = _run(record, outcomes, jail, blobs, num_runs)
            yield CommandCheck(turn, index, record, tuple(outcomes), problem)


def _run(
    record: CommandRecord,
    outcomes: list[CommandOutcome],
    jail: Jail,
    blobs: Blobs,
    num_runs: int,
) -> str:
    """Add an outcome for each run; say what kept it from running, or nothing."""
    try:
        for outcome in _outcomes(record, jail, blobs, num_runs):
            outcomes.append(outcome)
    except ArtifactDamaged as error:
        return f"{error}; restore it from a copy of the bucket to run the command again"
    except StoreError:
        raise
    except LoopError as error:
        return str(error)
    return ""


def _outcomes(
    record: CommandRecord, jail: Jail, blobs: Blobs, num_runs: int
) -> Iterator[CommandOutcome]:
    workspace, request = blobs.load(record.workspace), _whole_request(record, blobs)
    for _ in range(num_runs):
        yield outcome_of(jail.run(workspace, request), request)


def _whole_request(record: CommandRecord, blobs: Blobs) -> CommandRequest:
    """Give the request with its standard input, wherever that is kept."""
    if not record.stdin:
        return record.request
    files = {file.path: file for file in blobs.load(record.stdin).files}
    return record.request.model_copy(update={"stdin": blobs.read(files[STDIN_FILE])})
