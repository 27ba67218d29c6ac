"""What the activities of an episode share in one worker process."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from typing import ParamSpec, TypeVar

from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.episodes import EpisodeInput
from loopwright.contracts.failures import UserError
from loopwright.core.protocols import Engine, Jail, ObjectStore
from loopwright.environments.base import Environment
from loopwright.environments.registry import build_environment
from loopwright.trajectories.turn_log import TurnLog

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EpisodeResources:
    """The store, the engines and the jail, with the threads that blocking calls run on."""

    store: ObjectStore
    engines: Mapping[str, Engine]
    jail: Jail
    store_threads: Executor
    jail_threads: Executor

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

    def turn_log(self, episode: EpisodeInput) -> TurnLog:
        """Open the log of an episode's turns."""
        return TurnLog(self.store, episode.prefix, fingerprint(episode))

    async def in_store_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that blocks on the store."""
        return await _in_thread(self.store_threads, call, *args, **kwargs)

    async def in_jail_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that blocks on the jail."""
        return await _in_thread(self.jail_threads, call, *args, **kwargs)


async def _in_thread(
    threads: Executor, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(threads, lambda: call(*args, **kwargs))


def fingerprint(episode: EpisodeInput) -> str:
    """Digest what an episode's records depend on; another request's turns are not its own."""
    text = episode.model_dump_json(exclude={"prefix", "priority", "profile", "resume_from"})
    return hashlib.sha256(text.encode()).hexdigest()


def environment_of(episode: EpisodeInput) -> Environment:
    """Build the episode's environment, once per configuration and process."""
    return _environment(episode.environment.model_dump_json())


@lru_cache(maxsize=64)
def _environment(config: str) -> Environment:
    return build_environment(EnvironmentConfig.model_validate_json(config))
