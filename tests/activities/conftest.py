"""Activities run outside of workers, with an in-memory store and the base policy in it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from loopwright.activities.episode.grade_episode import GradeEpisode
from loopwright.activities.episode.renderers import RendererCache
from loopwright.activities.episode.resources import EpisodeResources
from loopwright.activities.episode.take_turns import TakeTurns
from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.contracts.workspaces import MIB
from loopwright.core.protocols import Engine, Jail
from loopwright.learning.checkpoints import import_directory
from tests.policies import PICO_DIRECTORY

V0 = PolicyVersion(policy_id="p", version=0)


@pytest.fixture
def activity() -> ActivityEnvironment:
    return ActivityEnvironment()


@pytest.fixture
def store() -> InMemoryObjectStore:
    return InMemoryObjectStore()


@pytest.fixture
def pico(store: InMemoryObjectStore) -> CheckpointRef:
    return import_directory(store, PICO_DIRECTORY, V0, prefix="loop/x")


@pytest.fixture(scope="module")
def jail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJail]:
    with LocalJail(tmp_path_factory.mktemp("jail"), num_slots=2) as jail:
        yield jail


class EpisodeActivities:
    """The activities of an episode with one engine and one jail."""

    def __init__(
        self, store: InMemoryObjectStore, engine: Engine, jail: Jail, folder: Path
    ) -> None:
        self._threads = ThreadPoolExecutor(4)
        self.resources = EpisodeResources(
            store=store,
            workspaces=Workspaces(store, folder / "workspaces", max_bytes=MIB),
            engines={"main": engine},
            jail=jail,
            store_threads=self._threads,
            jail_threads=self._threads,
        )
        renderers = RendererCache(store, folder / "tokenizers")
        self.take_turns = TakeTurns(self.resources, renderers).take_turns
        self.grade_episode = GradeEpisode(self.resources).grade_episode
