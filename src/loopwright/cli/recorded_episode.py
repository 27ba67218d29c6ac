"""The recorded turns of an episode, found in the store by the name that the Web UI shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopwright.contracts.commands import CommandRecord
from loopwright.contracts.failures import ArtifactDamaged, UserError
from loopwright.contracts.ids import EpisodeName, parse_episode
from loopwright.contracts.turns import TurnHead, TurnRecord
from loopwright.core.protocols import ObjectStore
from loopwright.trajectories.stored import find_trajectory
from loopwright.trajectories.turn_log import TurnLog


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """An episode with the turns that were graded, whatever else attempts at it committed.

    Before it is graded, its turns are those that a new attempt would go on from.
    """

    prefix: str
    turns: tuple[TurnRecord, ...]
    grading: tuple[CommandRecord, ...] = ()
    is_graded: bool = False

    def only(self, turn: int | None) -> "RecordedEpisode":
        """Give one turn, without the grading; all there is for None.

        Raises:
            UserError: the episode has no such turn.
        """
        if turn is None:
            return self
        if turn >= len(self.turns):
            raise UserError(
                f"--turn: expected at most {len(self.turns) - 1}, the last turn of {self.prefix} "
                f"counted from 0, got {turn}"
            )
        return replace(self, turns=(self.turns[turn],), grading=())


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
        ArtifactDamaged: its trajectory, or a turn that was graded, is missing or damaged.
        ContractError: a newer version stored its trajectory.
        StoreError: the store could not give them.
    """
    uids = [name.uid] if name.uid else store.list_folders(f"{name.loop}/")
    found = [prefix for prefix in map(name.prefix, uids) if any(store.list_keys(f"{prefix}/"))]
    if not found:
        raise UserError(
            f"no turn of an episode {name.loop}/{name.path} is in the store: one that takes its "
            f"first turn has none yet; the Web UI shows the ids of episodes, `loopwright list` "
            f"those of loops"
        )
    if len(found) > 1:
        raise UserError(_choices(found))
    return _read(store, found[0])


def _choices(prefixes: Sequence[str]) -> str:
    return "\n  ".join(["several loops had this name; say whose episode is meant:", *prefixes])


def _read(store: ObjectStore, prefix: str) -> RecordedEpisode:
    log = TurnLog(store, prefix, None)
    graded = find_trajectory(store, prefix)
    if graded is not None and graded.trajectory.head:
        trajectory = graded.trajectory
        head = TurnHead(num_turns=len(trajectory.turn_rewards), digest=trajectory.head)
        return RecordedEpisode(
            prefix, log.load(head).records, grading=trajectory.grading, is_graded=True
        )
    turns = log.deepest().records
    if not turns:
        raise ArtifactDamaged(f"no turn of {prefix} is as it was written; {ArtifactDamaged.advice}")
    return RecordedEpisode(prefix, turns)
