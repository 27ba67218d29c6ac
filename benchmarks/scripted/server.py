"""A server that speaks the part of vLLM's HTTP interface that the platform uses.

Like vLLM it forgets its version when it is started anew, holds requests while it is paused, and
drops those whose caller is gone. Unlike it, its weights are only looked for, never read.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import TypeVar

import pydantic
from aiohttp import web

from benchmarks.scripted.completions import LOGPROB, complete, turn_name

_FIRST_LABEL = "default"
_DRAIN_POLL_SECONDS = 0.01

Model = TypeVar("Model", bound=pydantic.BaseModel)


class _Sampling(pydantic.BaseModel):
    max_tokens: int
    seed: int
    stop_token_ids: list[int]


class _Generate(pydantic.BaseModel):
    token_ids: list[int]
    sampling_params: _Sampling


class _NewVersion(pydantic.BaseModel):
    new_version: str


class Script(pydantic.BaseModel):
    """What a benchmark may change while the server runs: ``POST /script``."""

    latency_seconds: float | None = None
    """Time that a completion takes; None leaves it."""
    is_holding: bool | None = None
    """Whether completions wait until they are let go; None leaves it."""


class Tally(pydantic.BaseModel):
    """What the server has done: ``GET /script``."""

    num_calls: int
    """Completions asked for since it was started, cut-off ones included."""
    num_running: int


@dataclass
class ScriptedServer:
    """One engine: its version, its requests, and how long they take."""

    api_key: str
    latency_seconds: float = 0.0
    is_holding: bool = False
    calls: Path | None = None
    """File that the name of each turn asked for is written to; it outlives the server."""
    label: str = _FIRST_LABEL
    num_calls: int = 0
    num_running: int = 0
    _admits: asyncio.Event = field(default_factory=asyncio.Event)
    _goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self) -> web.Application:
        """Build the application."""
        self._resume()
        self._hold(self.is_holding)
        app = web.Application()
        app.add_routes(
            [
                web.post("/inference/v1/generate", self._generate),
                web.get("/health", _answering(lambda: {})),
                web.get("/metrics", self._metrics),
                web.get("/weight_info", _answering(lambda: {"weight_version": self.label})),
                web.get("/is_paused", _answering(lambda: {"is_paused": not self._admits.is_set()})),
                web.post("/pause", self._pause),
                web.post("/resume", _answering(self._resume)),
                web.post("/update_weight_version", self._update_version),
                web.post("/collective_rpc", self._reload),
                web.post("/reset_prefix_cache", _answering(lambda: {"success": True})),
                web.get("/script", _answering(self._tally)),
                web.post("/script", self._change),
            ]
        )
        return app

    async def _generate(self, request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "")
        if not compare_digest(given.encode(), f"Bearer {self.api_key}".encode()):
            raise web.HTTPUnauthorized
        asked = _read(_Generate, await request.read())
        sampling = asked.sampling_params
        token_ids = complete(
            asked.token_ids,
            sampling.seed,
            max_tokens=sampling.max_tokens,
            stop_token_ids=sampling.stop_token_ids,
        )
        await self._admits.wait()
        self._count(turn_name(asked.token_ids, token_ids))
        first, last = await self._take_time()
        is_stopped = token_ids[-1] in sampling.stop_token_ids
        return web.json_response(_completion(token_ids, first, last, is_stopped=is_stopped))

    async def _take_time(self) -> tuple[str, str]:
        """Wait as long as a completion takes; give the versions at its start and at its end."""
        first = self.label
        self.num_running += 1
        try:
            await asyncio.sleep(self.latency_seconds)
            await self._released.wait()
            await self._goes_on.wait()
        finally:
            self.num_running -= 1
        return first, self.label

    def _count(self, name: str) -> None:
        self.num_calls += 1
        if self.calls is not None:
            with self.calls.open("a") as file:
                file.write(f"{name}\n")

    async def _pause(self, request: web.Request) -> web.Response:
        self._admits.clear()
        if request.query.get("mode") == "wait":
            while self.num_running:
                await asyncio.sleep(_DRAIN_POLL_SECONDS)
        else:
            self._goes_on.clear()
        return web.json_response({})

    def _resume(self) -> dict[str, object]:
        self._admits.set()
        self._goes_on.set()
        return {}

    async def _update_version(self, request: web.Request) -> web.Response:
        self.label = _read(_NewVersion, await request.read()).new_version
        return web.json_response({})

    async def _reload(self, request: web.Request) -> web.Response:
        weights = Path((await request.json())["kwargs"]["weights_path"])
        if not any(weights.glob("*.safetensors")):
            raise web.HTTPInternalServerError(text=f"no weights in {weights}")
        return web.json_response({"results": [None]})

    async def _change(self, request: web.Request) -> web.Response:
        script = _read(Script, await request.read())
        if script.latency_seconds is not None:
            self.latency_seconds = script.latency_seconds
        if script.is_holding is not None:
            self._hold(script.is_holding)
        return web.json_response({})

    def _hold(self, is_holding: bool) -> None:
        if is_holding:
            self._released.clear()
        else:
            self._released.set()

    def _tally(self) -> dict[str, object]:
        return Tally(num_calls=self.num_calls, num_running=self.num_running).model_dump()

    async def _metrics(self, _request: web.Request) -> web.Response:
        values = {
            "num_requests_running": self.num_running,
            "num_requests_waiting": 0,
            "kv_cache_usage_perc": 0.0,
            "num_preemptions_total": 0,
        }
        lines = [f'vllm:{name}{{engine="0"}} {value}' for name, value in values.items()]
        return web.Response(text="\n".join([*lines, ""]))


def _completion(
    token_ids: tuple[int, ...], first: str, last: str, *, is_stopped: bool
) -> dict[str, object]:
    """Write a completion as vLLM does; one under way at a publication has two versions."""
    middle = 0 if first == last else len(token_ids) // 2
    spans = [(first, 0, middle), (last, middle, len(token_ids))]
    scored = [{"token_id": token_id, "logprob": LOGPROB} for token_id in token_ids]
    choice = {
        "token_ids": token_ids,
        "logprobs": {"content": scored},
        "finish_reason": "stop" if is_stopped else "length",
        "weight_versions": [
            {"version": version, "start": start, "end": end}
            for version, start, end in spans
            if start < end
        ],
    }
    return {"choices": [choice]}


def _answering(
    answer: Callable[[], dict[str, object]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(_request: web.Request) -> web.Response:
        return web.json_response(answer())

    return handle


def _read(model: type[Model], body: bytes) -> Model:
    try:
        return model.model_validate_json(body)
    except pydantic.ValidationError as error:
        raise web.HTTPBadRequest(text=str(error)) from error
