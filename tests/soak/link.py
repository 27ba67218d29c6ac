"""A port of 127.0.0.1 in front of another: a network that can be cut."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

_CHUNK_BYTES = 1 << 16


class Link:
    """Passes connections on; an asynchronous context that ends them."""

    def __init__(self) -> None:
        """Lead nowhere yet."""
        self.upstream_port = 0
        """Port behind the link."""
        self._flows = asyncio.Event()
        self._flows.set()
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The link's own port."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def cut(self, seconds: float) -> None:
        """Let nothing pass for so long; what had come by then is lost with its connection."""
        self._flows.clear()
        await asyncio.sleep(seconds)
        await self._end_connections()
        self._flows.set()

    async def serve(self, near: "Side", far: "Side") -> None:
        """Pass bytes on in both directions until one side ends."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self.pump(near, far))
            both.create_task(self.pump(far, near))

    async def pump(self, source: "Side", target: "Side") -> None:
        """Pass bytes on in one direction, and end the connection with the source.

        Raises:
            ConnectionError: a side has ended.
        """
        while data := await source.reader.read(_CHUNK_BYTES):
            await self._flows.wait()
            await target.write(data)
        raise ConnectionError

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        sides = [Side(reader, writer)]
        try:
            await self._flows.wait()
            sides.append(Side(*await asyncio.open_connection("127.0.0.1", self.upstream_port)))
            await self.serve(*sides)
        except* (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a side ended, or the link was cut
        finally:
            for side in sides:
                side.writer.transport.abort()
            self._connections.discard(task)

    async def _end_connections(self) -> None:
        for task in list(self._connections):
            task.cancel()
        while self._connections:
            await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()
        await self._end_connections()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._server.wait_closed(), 1)


class Side:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def write(self, data: bytes) -> None:
        """Write, and wait for a slow reader.

        Raises:
            ConnectionError: the other end is gone.
        """
        self.writer.write(data)
        await self.writer.drain()
