"""Recorded commands, run again and compared in every digest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopwright.contracts.commands import STDIN_FILE, CommandOutcome, CommandRecord, Part
from loopwright.contracts.failures import LoopError
from loopwright.contracts.turns import TurnRecord
from loopwright.contracts.workspaces import CommandRequest
from loopwright.core.outcomes import differing_parts, outcome_of
from loopwright.core.protocols import Blobs, Jail


@dataclass(frozen=True, slots=True)
class CommandCheck:
    """What running one recorded command again came to."""

    turn: int
    """Index of its turn, from 0."""
    index: int
    """Index of the command in its turn, from 0."""
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
    turns: Sequence[TurnRecord], *, jail: Jail, blobs: Blobs, num_runs: int = 1
) -> Iterator[CommandCheck]:
    """Run every command of the turns again, in fresh jails, one after the other."""
    for turn in turns:
        for index, record in enumerate(turn.commands):
            outcomes: list[CommandOutcome] = []
            problem = ""
            try:
                for outcome in _outcomes(record, jail, blobs, num_runs):
                    outcomes.append(outcome)
            except LoopError as error:
                problem = str(error)
            yield CommandCheck(turn.index, index, record, tuple(outcomes), problem)


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
