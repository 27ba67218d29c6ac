"""Real Temporal servers, each shared by many tests: every test has a namespace of its own."""

from temporalio.client import Client
from temporalio.testing import TimeSkipper, WorkflowEnvironment

from loopwright.embedded.temporal_settings import server_arguments
from loopwright.sdk.plugin import plugin
from tests.binaries import binary

NAMESPACES_PER_SERVER = 100
SETTINGS = (
    "frontend.WorkflowTimeSkippingEnabled=true",
    # Timers and pauses between attempts end when they are due, not up to a second later.
    'history.timerProcessorMaxTimeShift="1ms"',
)
"""Beside those of ``deploy/temporal``."""


class TemporalServers:
    """Start a server when one is needed, and another when its namespaces are used up.

    Namespaces are made as the server starts: one made later is known to all its parts only
    after seconds.
    """

    def __init__(self) -> None:
        self._server: WorkflowEnvironment | None = None
        self._unused: list[str] = []

    async def new_namespace(self, *, is_sandboxed: bool) -> Client:
        """Connect to a namespace without workflows, whose workflows have clocks of their own."""
        if self._server is None or not self._unused:
            await self.stop()
            self._unused = [f"namespace-{i}" for i in range(NAMESPACES_PER_SERVER)]
            self._server = await start(self._unused)
        client = await self._server.connect_client(
            namespace=self._unused.pop(), plugins=[plugin(is_sandboxed=is_sandboxed)]
        )
        return TimeSkipper(client).client

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.shutdown()
            self._server = None


async def start(namespaces: list[str]) -> WorkflowEnvironment:
    arguments = server_arguments()
    arguments += [word for setting in SETTINGS for word in ("--dynamic-config-value", setting)]
    arguments += [word for name in namespaces for word in ("--namespace", name)]
    return await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"), dev_server_extra_args=arguments
    )
