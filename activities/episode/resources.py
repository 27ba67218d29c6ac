"""What the activities of an episode share in one worker process."""

import asyncio
import hashlib
import math
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ParamSpec, TypeVar

from loopwright.adapters.entry_queue import EntryQueue, NoPlace
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.episodes import EpisodeInput
from loopwright.contracts.failures import (
    EnvironmentBusy,
    EnvironmentFailure,
    LoopError,
    UserError,
)
from loopwright.contracts.turns import TurnHead
from loopwright.core.protocols import Engine, Jail, ObjectStore
from loopwright.environments.base import Environment
from loopwright.environments.registry import build_environment
from loopwright.trajectories.turn_log import Chain, TurnLog

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EpisodeResources:
    """The stores, the engines and the jail, with the threads that blocking calls run on."""

    store: ObjectStore
    workspaces: Workspaces
    engines: Mapping[str, Engine]
    jail: Jail
    store_threads: Executor
    jail_threads: Executor
    longest_wait_seconds: float = 300.0
    """How long an episode waits for others of its environment before it is told to come again."""
    chains: "RecentChains" = field(default_factory=lambda: RecentChains())
    queues: "defaultdict[str, EntryQueue]" = field(default_factory=lambda: defaultdict(EntryQueue))
    """Who is at work on this host, by environment."""

    def engine(self, name: str) -> Engine:
        """Give the engine of this name.

        Raises:
            UserError: this worker knows no such engine.
        """
        try:
            return self.engines[name]
        except KeyError:
            known = ", ".join(sorted(self.engines)) or "none"
            raise UserError(
                f"engine {name!r} is not known to this worker (known: {known}); "
                f"set LOOPWRIGHT_ENGINE_URLS or change engines in the configuration"
            ) from None

    @asynccontextmanager
    async def place_of(self, episode: EpisodeInput) -> AsyncIterator[None]:
        """Wait until the host may be at one more episode of the environment, and count it.

        Raises:
            EnvironmentBusy: as many as may be have been at work all the time.
        """
        environment = episode.environment
        most = environment.max_concurrent or math.inf
        place = self.queues[environment.id].place(
            priority=episode.priority.key,
            limit=lambda: most,
            longest_wait_seconds=self.longest_wait_seconds,
        )
        try:
            async with place:
                yield
        except NoPlace as error:
            raise EnvironmentBusy(
                f"this host is at {environment.max_concurrent} episodes of {environment.id}, as "
                f"many as environments.{environment.id}.max_concurrent allows"
            ) from error

    def load_chain(self, episode: EpisodeInput, head: TurnHead) -> Chain:
        """Give the turns that lead to ``head``; those just taken here need no reading.

        Raises:
            ArtifactDamaged: a record is missing or damaged.
        """
        known = self.chains.get(head.digest)
        return known if known is not None else self.turn_log(episode).load(head)

    def turn_log(self, episode: EpisodeInput) -> TurnLog:
        """Open the log of an episode's turns."""
        return TurnLog(self.store, episode.prefix, fingerprint(episode))

    async def in_store_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that blocks on the store."""
        return await _in_thread(self.store_threads, call, *args, **kwargs)

    async def in_jail_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that blocks on the jail."""
        return await _in_thread(self.jail_threads, call, *args, **kwargs)


class RecentChains:
    """Chains of turns by the digest of their head, which stands for all that is in them."""

    def __init__(self, max_chains: int = 1024) -> None:
        """Keep the newest ``max_chains``."""
        self._max_chains = max_chains
        self._chains: OrderedDict[str, Chain] = OrderedDict()

    def put(self, chain: Chain) -> None:
        """Remember a chain."""
        self._chains[chain.head.digest] = chain
        while len(self._chains) > self._max_chains:
            self._chains.popitem(last=False)

    def get(self, digest: str) -> Chain | None:
        """Give the chain that leads to a digest; None when it is not known here."""
        return self._chains.get(digest)


async def _in_thread(
    threads: Executor, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(threads, lambda: call(*args, **kwargs))


def fingerprint(episode: EpisodeInput) -> str:
    """Digest what an episode's records depend on; another request's turns are not its own."""
    text = episode.model_dump_json(
        exclude={
            **dict.fromkeys(("prefix", "priority", "profile", "resume_from"), True),
            "environment": {"weight", "fairness_weight", "max_concurrent"},
        }
    )
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def environment_errors(environment: Environment) -> Iterator[None]:
    """Give what an environment's own code raises its owner; the platform's errors pass unchanged.

    Raises:
        EnvironmentFailure: the environment's code failed.
    """
    try:
        yield
    except LoopError:
        raise
    # Whatever it is, another attempt would meet it again, and no reward may come of it.
    except Exception as error:
        raise EnvironmentFailure(
            f"environment {environment.id} failed: {type(error).__name__}: {error}"
        ) from error


def environment_of(episode: EpisodeInput) -> Environment:
    """Build the episode's environment, once per configuration and process."""
    return _environment(episode.environment.model_dump_json())


@lru_cache(maxsize=64)
def _environment(config: str) -> Environment:
    return build_environment(EnvironmentConfig.model_validate_json(config))
