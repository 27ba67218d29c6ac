"""The recorded turns of an episode, found in the store by the name that the Web UI shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.contracts.failures import UserError
from loopwright.contracts.ids import EpisodeName, parse_episode
from loopwright.contracts.turns import TurnRecord
from loopwright.core.protocols import ObjectStore
from loopwright.trajectories.turn_log import TurnLog


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """An episode and the chain of its turns that a new attempt would go on from."""

    prefix: str
    turns: tuple[TurnRecord, ...]

    def only(self, turn: int | None) -> Sequence[TurnRecord]:
        """Give one turn; all of them for None.

        Raises:
            UserError: the episode has no such turn.
        """
        if turn is None:
            return self.turns
        if turn >= len(self.turns):
            raise UserError(
                f"--turn: expected at most {len(self.turns) - 1}, the last turn of {self.prefix} "
                f"counted from 0, got {turn}"
            )
        return (self.turns[turn],)


def read_episode_name(text: str) -> EpisodeName:
    """Read a workflow id, or a key prefix.

    Raises:
        UserError: it is neither.
    """
    name = parse_episode(text)
    if name is None:
        raise UserError(
            f"EPISODE: expected an id as the Web UI shows it, such as "
            f"loop/LOOP/iteration/000001/task/ENVIRONMENT.TASK/episode/0, got {text!r}"
        )
    return name


def find_episode(store: ObjectStore, name: EpisodeName) -> RecordedEpisode:
    """Find the turns of an episode in the loop it is of.

    Raises:
        UserError: no loop has turns of it, or several have.
        StoreError: the store could not give them.
    """
    uids = [name.uid] if name.uid else store.list_folders(f"{name.loop}/")
    prefixes = [name.prefix(uid) for uid in uids]
    read = [
        RecordedEpisode(each, TurnLog(store, each, None).deepest().records) for each in prefixes
    ]
    found = [episode for episode in read if episode.turns]
    if not found:
        raise UserError(
            f"no turn of an episode {name.loop}/{name.path} is in the store; the Web UI shows the "
            f"ids of episodes, `loopwright list` those of loops"
        )
    if len(found) > 1:
        choices = "\n  ".join(episode.prefix for episode in found)
        raise UserError(f"several loops had this name; say whose episode is meant:\n  {choices}")
    return found[0]
