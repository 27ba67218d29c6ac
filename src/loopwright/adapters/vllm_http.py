"""HTTP to a vLLM server: one session a process, and what each kind of failure means."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import aiohttp

from loopwright.contracts.failures import ContractError, EngineUnavailable

_RETRYABLE_STATUSES = frozenset({408, 425, 429})
_LONGEST_MESSAGE = 500
_CONNECT_SECONDS = 5.0
# The server closes idle connections after five seconds; a request must not meet that moment.
_IDLE_CONNECTION_SECONDS = 3.0


class Closing:
    """An asynchronous context that closes itself at the end."""

    async def close(self) -> None:
        """Let go of what is held."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class VllmHttp(Closing):
    """Requests to one server, of which any number may be under way."""

    def __init__(self, base_url: str, *, api_key: str | None = None) -> None:
        """Take the server's URL without a path, and the bearer token it wants."""
        self.base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        parameters: Mapping[str, str] | None = None,
        total_seconds: float,
        idle_seconds: float | None = None,
    ) -> bytes:
        """Send one request and give the whole answer.

        Args:
            method: GET or POST.
            path: path of the endpoint.
            body: what is sent as JSON.
            parameters: query of the URL.
            total_seconds: longest time until the answer is complete.
            idle_seconds: longest time without a byte of it.

        Raises:
            EngineUnavailable: no answer, a cut one, or one that says to try again.
            ContractError: the server refuses this very request.
        """
        timeout = aiohttp.ClientTimeout(
            total=total_seconds, sock_connect=_CONNECT_SECONDS, sock_read=idle_seconds
        )
        where = f"{method} {self.base_url}{path}"
        try:
            async with self._open().request(
                method,
                self.base_url + path,
                json=body,
                params=parameters,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                content = await response.read()
        except TimeoutError as error:
            raise EngineUnavailable(f"{where}: no answer in time ({error})") from error
        except (aiohttp.ClientError, OSError) as error:
            raise EngineUnavailable(f"{where}: {type(error).__name__}: {error}") from error
        _check_status(response.status, content, where)
        return content

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            # Transports close in the next round of the event loop.
            await asyncio.sleep(0)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_CONNECTION_SECONDS),
                headers=self._headers,
                trust_env=False,
            )
        return self._session


def _check_status(status: int, content: bytes, where: str) -> None:
    if status < 300:
        return
    said = content[:_LONGEST_MESSAGE].decode(errors="replace")
    message = f"{where}: status {status}: {said}"
    if status >= 500 or status in _RETRYABLE_STATUSES:
        raise EngineUnavailable(message)
    if status in (401, 403):
        raise ContractError(f"{message}; check LOOPWRIGHT_ENGINE_API_KEY")
    raise ContractError(message)
