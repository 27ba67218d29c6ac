"""The bodies of an episode's activities with everything but Temporal in this process."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.scripted.completions import complete
from benchmarks.scripted.environment import LEDGER, LedgerOptions
from loopwright.activities.episode.grade_episode import GradeEpisode
from loopwright.activities.episode.renderers import RendererCache
from loopwright.activities.episode.resources import EpisodeResources
from loopwright.activities.episode.take_turns import TakeTurns
from loopwright.adapters.engine import ScriptedEngine
from loopwright.adapters.jail import FakeJail
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.configs import EnvironmentConfig, EpisodeConfig
from loopwright.contracts.engines import GenerateRequest
from loopwright.contracts.episodes import EpisodeInput
from loopwright.contracts.policies import CheckpointRef, PolicyVersion, SamplingParams
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.workspaces import MIB
from loopwright.core.protocols import Engine
from loopwright.embedded.options import default_model
from loopwright.learning.checkpoints import import_directory

NUM_TURNS = 4
_POLICY = PolicyVersion(policy_id="bench", version=0)
_PREFIX = "bench"
_THREADS = 4


@dataclass(frozen=True, slots=True)
class InMemoryEpisodes:
    """Activities whose store is a dictionary."""

    store: InMemoryObjectStore
    checkpoint: CheckpointRef
    activities: list[Callable[..., Any]]

    @classmethod
    def build(cls, folder: Path, engine: Engine) -> "InMemoryEpisodes":
        """Import the base policy; ``folder`` is for caches."""
        store = InMemoryObjectStore()
        threads = ThreadPoolExecutor(_THREADS)
        resources = EpisodeResources(
            store=store,
            workspaces=Workspaces(store, folder / "workspaces", max_bytes=MIB),
            engines={"main": engine},
            jail=idle_jail(),
            store_threads=threads,
            jail_threads=threads,
        )
        renderers = RendererCache(store, folder / "tokenizers")
        return cls(
            store=store,
            checkpoint=base_checkpoint(store),
            activities=[
                TakeTurns(resources, renderers).take_turns,
                GradeEpisode(resources).grade_episode,
            ],
        )


def base_checkpoint(store: InMemoryObjectStore) -> CheckpointRef:
    """Import the base policy into a store; every process gets the same reference."""
    return import_directory(store, default_model(), _POLICY, prefix=_PREFIX)


def scripted_engine() -> ScriptedEngine:
    """Give the engine that says in this process what the server says over HTTP."""
    return ScriptedEngine(answer)


def answer(request: GenerateRequest) -> tuple[int, ...]:
    """Complete a request by the script."""
    return complete(
        request.token_ids,
        request.seed,
        max_tokens=request.max_tokens,
        stop_token_ids=request.stop_token_ids,
    )


def idle_jail() -> FakeJail:
    """Give a jail that nothing is asked of."""
    return FakeJail.of(())


def episode_input(
    checkpoint: CheckpointRef, name: str, *, turns_per_activity: int, seed: int = 0
) -> EpisodeInput:
    """Describe an episode of ``NUM_TURNS`` turns with a tool that does nothing."""
    options = LedgerOptions(num_turns=NUM_TURNS)
    return EpisodeInput(
        prefix=f"{_PREFIX}/{name}",
        kind="training",
        task=TaskRef(environment=LEDGER, task_id="train-0"),
        environment=EnvironmentConfig(id=LEDGER, options=options.model_dump()),
        index=0,
        checkpoint=checkpoint,
        engine="main",
        sampling=SamplingParams(),
        budgets=EpisodeConfig(max_turns=NUM_TURNS, turns_per_activity=turns_per_activity),
        seed=seed,
    )
