"""The links of the soak do pass on, fail and cut as they are told."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from loopwright.adapters.s3_store import BRIEF, S3ObjectStore
from loopwright.contracts.failures import StoreError
from tests.servers import ACCESS_KEY, SECRET_KEY, free_port, open_store, s3_server
from tests.soak.failing_store import FailingStore, Fault
from tests.soak.link import Link

LARGE = bytes(range(256)) * 4096


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    with s3_server(tmp_path_factory.mktemp("s3"), port):
        open_store(port).put("large", LARGE)
        yield port


@pytest.fixture
async def link(server_port: int) -> AsyncIterator[FailingStore]:
    async with FailingStore(seed=1, slow_seconds=0.01) as link:
        link.upstream_port = server_port
        yield link


def store_behind(link: FailingStore) -> S3ObjectStore:
    return S3ObjectStore(
        "tests",
        endpoint=f"http://127.0.0.1:{link.port}",
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
        patience=BRIEF,
    )


@pytest.mark.s3
async def test_link_passes_objects_on_in_both_directions(link: FailingStore) -> None:
    store = store_behind(link)
    await asyncio.to_thread(store.put, "small", b"1")
    assert await asyncio.to_thread(store.get, "small") == b"1"
    assert await asyncio.to_thread(store.get, "large") == LARGE
    assert "large" in await asyncio.to_thread(store.list_keys, "")
    assert not link.num_faults


@pytest.mark.s3
@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.INTERNAL_ERROR, Fault.CUT_ANSWER])
async def test_every_request_fails_as_asked(link: FailingStore, fault: Fault) -> None:
    link.share, link.kinds = 1.0, (fault,)
    store = store_behind(link)
    with pytest.raises(StoreError):
        await asyncio.to_thread(store.get, "large")
    with pytest.raises(StoreError):
        await asyncio.to_thread(store.list_keys, "")
    assert link.num_faults[fault] >= 2 * BRIEF.max_attempts


@pytest.mark.s3
async def test_slow_answers_arrive(link: FailingStore) -> None:
    link.share, link.kinds = 1.0, (Fault.SLOW_ANSWER,)
    assert await asyncio.to_thread(store_behind(link).get, "large") == LARGE
    assert link.num_faults[Fault.SLOW_ANSWER] == 1


async def test_same_seed_fails_the_same_requests() -> None:
    def draws(seed: int) -> list[Fault | None]:
        store = FailingStore(seed=seed)
        store.share = 0.5
        return [store._draw() for _ in range(50)]

    assert draws(1) == draws(1) != draws(2)


@pytest.fixture
async def echo() -> AsyncIterator[Link]:
    """Give a link to a server that says what it is told."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Link() as link:
        link.upstream_port = server.sockets[0].getsockname()[1]
        yield link


async def test_cut_ends_what_was_under_way_and_lets_the_next_through(echo: Link) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
    writer.write(b"before")
    assert await reader.read(100) == b"before"
    cut = asyncio.create_task(echo.cut(0.2))
    await asyncio.sleep(0)
    writer.write(b"during")
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    await cut
    reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
    writer.write(b"after")
    assert await reader.read(100) == b"after"
    writer.close()
