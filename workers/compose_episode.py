"""What an episode worker is made of: engines, jails, and the threads that wait for them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

from temporalio.client import Client

from loopwright.activities.episode.grade_episode import GradeEpisode
from loopwright.activities.episode.renderers import RendererCache
from loopwright.activities.episode.resources import EpisodeResources
from loopwright.activities.episode.take_turns import TakeTurns
from loopwright.adapters.jail_roots import jail_root
from loopwright.adapters.limited_engine import LimitedEngine
from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.root_store import RootStore
from loopwright.adapters.vllm_engine import VllmEngine
from loopwright.workers.settings import Settings
from loopwright.workers.stores import open_store
from loopwright.workers.workspaces import open_workspaces

_STORE_THREADS = 16


async def compose(
    settings: Settings, client: Client, stack: AsyncExitStack
) -> list[Callable[..., Any]]:
    """Build the activities of the episode pool; the stack closes what they hold."""
    store = open_store(settings, max_connections=_STORE_THREADS)
    workspaces = open_workspaces(settings, store)
    jail = stack.enter_context(
        LocalJail(
            jail_root(settings.state_dir),
            num_slots=settings.sandbox_slots,
            launcher=settings.sandbox_launcher,
            may_be_degraded=settings.sandbox_degraded,
            blobs=workspaces,
            roots=RootStore(settings.roots_dir),
        )
    )
    engines = {
        name: await _open_engine(name, url, settings, stack)
        for name, url in settings.engine_urls.items()
    }
    resources = EpisodeResources(
        store=store,
        workspaces=workspaces,
        engines=engines,
        jail=jail,
        store_threads=ThreadPoolExecutor(_STORE_THREADS, thread_name_prefix="store"),
        jail_threads=ThreadPoolExecutor(settings.sandbox_slots, thread_name_prefix="jail"),
    )
    renderers = RendererCache(store, settings.state_dir / "tokenizers")
    return [
        TakeTurns(resources, renderers).take_turns,
        GradeEpisode(resources).grade_episode,
    ]


async def _open_engine(
    name: str, url: str, settings: Settings, stack: AsyncExitStack
) -> LimitedEngine:
    server = await stack.enter_async_context(VllmEngine(url, api_key=settings.engine_api_key))
    limited = LimitedEngine(
        server,
        name=name,
        max_concurrent=settings.engine_max_concurrent or settings.max_episodes,
    )
    return await stack.enter_async_context(limited)
