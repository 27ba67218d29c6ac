"""What was asked of the engine twice, and what stands in the log of turns twice."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.scripted.completions import turn_name
from loopwright.contracts.turns import TurnRecord
from loopwright.core.protocols import ObjectStore

_KEY = re.compile(r"(?P<episode>.+)/turn/(?P<index>\d{4,})-[^/]+\.json")
_READS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of one episode."""

    episode: str
    index: int


@dataclass(frozen=True, slots=True)
class TurnAudit:
    """What became of the turns of a loop."""

    num_turns: int
    """Turns on record."""
    num_committed_twice: int
    """Turns with more than one record."""
    num_calls: int
    """Completions asked for."""
    num_taken_again: int
    """Completions of a turn that was on record already: a later one had been asked for."""

    @property
    def num_repeated(self) -> int:
        """Completions of a turn that had been asked for before."""
        return self.num_calls - self.num_turns


def audit(store: ObjectStore, loop_id: str, calls: Iterable[str]) -> TurnAudit:
    """Compare the records of a loop's turns with the turns that its engine was asked for.

    Args:
        store: has the records.
        loop_id: the loop.
        calls: names of the turns asked for, in order.
    """
    keys = [key for key in store.list_keys(f"loop/{loop_id}/") if _KEY.fullmatch(key)]
    records = Counter(map(_turn_of, keys))
    with ThreadPoolExecutor(_READS_AT_ONCE) as threads:
        names = threads.map(lambda key: _name(store, key), keys)
        turns = dict(zip(names, map(_turn_of, keys), strict=True))
    asked = [turns[name] for name in calls if name in turns]
    return TurnAudit(
        num_turns=len(records),
        num_committed_twice=sum(number > 1 for number in records.values()),
        num_calls=len(asked),
        num_taken_again=count_steps_back(asked),
    )


def count_steps_back(asked: Sequence[Turn]) -> int:
    """Count the turns that were asked for after a later one of their episode."""
    newest: dict[str, int] = {}
    num_back = 0
    for turn in asked:
        num_back += turn.index < newest.get(turn.episode, 0)
        newest[turn.episode] = max(turn.index, newest.get(turn.episode, 0))
    return num_back


def _turn_of(key: str) -> Turn:
    match = _KEY.fullmatch(key)
    assert match is not None
    return Turn(match["episode"], int(match["index"]))


def _name(store: ObjectStore, key: str) -> str:
    record = TurnRecord.model_validate_json(store.get(key))
    return turn_name(record.prompt_ids, record.completion_ids)
