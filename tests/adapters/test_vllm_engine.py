"""Completions of a server that answers like vLLM, and what is refused of them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from loopwright.adapters.vllm_admin import VllmAdmin
from loopwright.adapters.vllm_engine import VllmEngine
from loopwright.contracts.engines import GenerateRequest
from loopwright.contracts.failures import EngineUnavailable
from loopwright.contracts.policies import PolicyVersion, SamplingParams, VersionSpan


class Server:
    """Answers every completion with three tokens, of the spans it is told."""

    def __init__(self) -> None:
        self.spans = [("p@3", 0, 3)]
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.label = "default"

    async def generate(self, request: web.Request) -> web.Response:
        await request.read()
        choice = {
            "token_ids": [5, 6, 7],
            "logprobs": {"content": [{"token_id": t, "logprob": -0.5} for t in (5, 6, 7)]},
            "finish_reason": "stop",
            "weight_versions": [
                {"version": version, "start": start, "end": end}
                for version, start, end in self.spans
            ],
        }
        return web.json_response({"choices": [choice]})

    async def administer(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else {}
        self.label = body.get("new_version", self.label)
        self.asked.append((request.path, dict(request.query)))
        return web.json_response(
            {"weight_version": self.label, "is_paused": False, "success": True}
        )


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def url(server: Server) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/inference/v1/generate", server.generate)
    app.router.add_route("*", "/{tail:.*}", server.administer)
    async with TestServer(app) as listening:
        yield str(listening.make_url("")).rstrip("/")


@pytest.fixture
async def engine(url: str) -> AsyncIterator[VllmEngine]:
    async with VllmEngine(url) as engine:
        yield engine


def request_of(version: int, *, may_be_newer: bool = False) -> GenerateRequest:
    return GenerateRequest(
        token_ids=(1, 2),
        policy=PolicyVersion(policy_id="p", version=version),
        may_be_newer=may_be_newer,
        sampling=SamplingParams(),
        max_tokens=8,
        stop_token_ids=(7,),
        seed=0,
    )


async def test_completion_of_the_version_asked_for_is_given(engine: VllmEngine) -> None:
    completion = await engine.generate(request_of(3))
    assert completion.token_ids == (5, 6, 7)
    assert completion.version_spans == (VersionSpan(version=3, start=0, end=3),)


@pytest.mark.parametrize("served", ["p@2", "p@4", "q@3", "default", "unpublished", "p@", "p@x"])
async def test_completion_of_another_version_is_refused(
    engine: VllmEngine, server: Server, served: str
) -> None:
    server.spans = [(served, 0, 3)]
    with pytest.raises(EngineUnavailable, match=f"of p@3, got one of {served}"):
        await engine.generate(request_of(3))


async def test_newer_versions_may_sample_where_the_request_lets_them(
    engine: VllmEngine, server: Server
) -> None:
    server.spans = [("p@3", 0, 1), ("p@12", 1, 3)]
    completion = await engine.generate(request_of(2, may_be_newer=True))
    assert [span.version for span in completion.version_spans] == [3, 12]


@pytest.mark.parametrize("served", ["p@2", "q@9", "default"])
async def test_older_versions_and_other_policies_never_may(
    engine: VllmEngine, server: Server, served: str
) -> None:
    server.spans = [(served, 0, 3)]
    with pytest.raises(EngineUnavailable, match="p@3 or a later one"):
        await engine.generate(request_of(3, may_be_newer=True))


@pytest.mark.parametrize("spans", [[("p@3", 0, 2)], [("p@3", 0, 1), ("p@3", 2, 3)], []])
async def test_spans_that_leave_tokens_out_are_refused(
    engine: VllmEngine, server: Server, spans: list[tuple[str, int, int]]
) -> None:
    server.spans = spans
    with pytest.raises(EngineUnavailable, match="do not cover 3 tokens"):
        await engine.generate(request_of(3))


@pytest.mark.parametrize(
    ("in_flight", "mode", "resets_running"),
    [("turn_end", "wait", True), ("re_prefill", "keep", True), ("keep", "keep", False)],
)
async def test_publication_treats_completions_under_way_as_told(
    url: str, server: Server, tmp_path: Any, in_flight: Any, mode: str, resets_running: bool
) -> None:
    async with VllmAdmin(url) as admin:
        await admin.publish(tmp_path, "p@4", in_flight=in_flight)
    asked = dict(server.asked)
    assert asked["/pause"] == {"mode": mode}
    assert ("reset_running_requests" in asked["/reset_prefix_cache"]) is resets_running
    assert [path for path, _ in server.asked][-3:] == ["/resume", "/weight_info", "/is_paused"]
