"""What is on record of the episodes of loops: each must have exactly one outcome."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loopwright.contracts.episodes import EpisodeResult
from loopwright.contracts.groups import GroupManifest
from loopwright.contracts.ids import episode_path
from loopwright.core.protocols import ObjectStore

_MANIFEST = re.compile(r"loop/(?P<loop>[^/]+)/[^/]+/(?P<group>.+/task/[^/]+)/group-[0-9a-f]+\.json")


@dataclass(frozen=True, slots=True)
class Accounts:
    """The outcomes in the store's records of groups."""

    num_asked: int
    """Episodes that the loops were asked for."""
    outcomes: Mapping[str, tuple[EpisodeResult, ...]]
    """By the path of the episode, which begins with its loop's id."""

    @property
    def num_missing(self) -> int:
        """Episodes without an outcome."""
        return self.num_asked - len(self.outcomes)

    @property
    def num_doubled(self) -> int:
        """Episodes with more than one."""
        return sum(len(found) > 1 for found in self.outcomes.values())

    @property
    def num_failed(self) -> int:
        """Episodes with an outcome that is no reward."""
        return sum(reward is None for reward in self.rewards.values())

    @property
    def num_turns(self) -> int:
        """Turns of all outcomes together."""
        return sum(each.num_turns for found in self.outcomes.values() for each in found)

    @property
    def rewards(self) -> dict[str, float | None]:
        """Reward of each episode, by its path."""
        return {path: found[0].reward for path, found in self.outcomes.items()}


def accounts_of(store: ObjectStore, loop_ids: Iterable[str], *, num_asked: int) -> Accounts:
    """Read the records of every group of some loops."""
    outcomes: dict[str, list[EpisodeResult]] = defaultdict(list)
    for loop_id in loop_ids:
        for key in store.list_keys(f"loop/{loop_id}/"):
            if match := _MANIFEST.fullmatch(key):
                manifest = GroupManifest.model_validate_json(store.get(key))
                for episode in manifest.episodes:
                    path = episode_path(f"{match['loop']}/{match['group']}", episode.index)
                    outcomes[path].append(episode)
    return Accounts(num_asked, {path: tuple(found) for path, found in outcomes.items()})
