"""The whole platform, real in every part, once for all tests of this folder."""

from collections.abc import Iterator

import pytest

from loopwright.embedded.stack import Stack, StackInfo
from loopwright.sdk import LoopClient


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("platform") / "state")
    try:
        stack.ensure_running(print)
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def info(platform: Stack) -> StackInfo:
    """Give where everything is now; also waits until all of it is healthy."""
    return platform.ensure_running()


@pytest.fixture
async def client(info: StackInfo) -> LoopClient:
    return await LoopClient.connect(info.temporal_address)
