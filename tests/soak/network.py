"""What stands between the workers and the servers of a platform: one link to each server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.scripted.platform import with_environment
from loopwright.embedded.plan import Plan
from tests.soak.failing_store import FailingStore
from tests.soak.link import Link


@dataclass
class Network:
    """The links, which workers know instead of the servers."""

    temporal: Link
    engine: Link
    store: FailingStore
    num_cuts: int = 0

    def join(self, plan: Plan) -> Plan:
        """Put the links before the servers of a plan, for its workers only."""
        servers = plan.connections
        self.temporal.upstream_port = _port(servers.temporal_address)
        self.engine.upstream_port = _port(servers.engine_url)
        self.store.upstream_port = _port(servers.s3_endpoint)
        variables = {
            "LOOPWRIGHT_TEMPORAL_ADDRESS": f"127.0.0.1:{self.temporal.port}",
            "LOOPWRIGHT_ENGINE_URLS": f"main=http://127.0.0.1:{self.engine.port}",
            "LOOPWRIGHT_S3_ENDPOINT": f"http://127.0.0.1:{self.store.port}",
        }
        children = [
            with_environment(child, variables) if child.stage else child for child in plan.children
        ]
        return plan.model_copy(update={"children": tuple(children)})

    async def cut(self, seconds: float) -> None:
        """Cut the workers off from every server."""
        links = (self.temporal, self.engine, self.store)
        await asyncio.gather(*(link.cut(seconds) for link in links))
        self.num_cuts += 1


@asynccontextmanager
async def network(*, seed: int) -> AsyncIterator[Network]:
    """Open the links, and close them."""
    async with Link() as temporal, Link() as engine, FailingStore(seed=seed) as store:
        yield Network(temporal, engine, store)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
