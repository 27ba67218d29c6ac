"""The scripted engine's server under the real clients of vLLM."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from benchmarks.scripted.completions import complete, turn_name
from benchmarks.scripted.server import ScriptedServer
from loopwright.adapters.vllm_admin import VllmAdmin
from loopwright.adapters.vllm_engine import VllmEngine
from loopwright.contracts.engines import GenerateRequest
from loopwright.contracts.failures import ContractError, EngineUnavailable
from loopwright.contracts.policies import PolicyVersion, SamplingParams, VersionSpan
from tests.policies import PICO_DIRECTORY

KEY = "key"
V1 = PolicyVersion(policy_id="p", version=1)
V2 = V1.model_copy(update={"version": 2})


class Running:
    """A server on a free port, with the clients of it."""

    def __init__(self, calls: Path) -> None:
        self.server = ScriptedServer(api_key=KEY, calls=calls)
        self.calls = calls

    async def start(self) -> None:
        self._runner = web.AppRunner(
            self.server.app(), handler_cancellation=True, shutdown_timeout=0
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self.engine = VllmEngine(self.url, api_key=KEY)
        self.admin = VllmAdmin(self.url, api_key=KEY)

    async def stop(self) -> None:
        await self.engine.close()
        await self.admin.close()
        await self._runner.cleanup()

    async def script(self, **changes: Any) -> None:
        async with aiohttp.ClientSession() as session:
            await session.post(f"{self.url}/script", json=changes)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    running = Running(tmp_path / "calls.txt")
    await running.start()
    yield running
    await running.stop()


def request(**changes: Any) -> GenerateRequest:
    values = {
        "token_ids": (5, 6, 7),
        "policy": V1,
        "sampling": SamplingParams(),
        "max_tokens": 20,
        "stop_token_ids": (2,),
        "seed": 9,
    }
    return GenerateRequest.model_validate(values | changes)


async def test_completion_depends_on_token_ids_and_seed_alone(running: Running) -> None:
    await running.admin.publish(PICO_DIRECTORY, V1.label)
    first = await running.engine.generate(request())
    await running.admin.publish(PICO_DIRECTORY, V2.label)
    second = await running.engine.generate(request(policy=V2))
    assert second.token_ids == first.token_ids
    assert second.version_spans == (VersionSpan(version=2, start=0, end=len(first.token_ids)),)
    for changed in (request(policy=V2, seed=10), request(policy=V2, token_ids=(5, 6, 8))):
        assert (await running.engine.generate(changed)).token_ids != first.token_ids


async def test_server_says_what_an_engine_in_the_process_would(running: Running) -> None:
    await running.admin.publish(PICO_DIRECTORY, V1.label)
    said = await running.engine.generate(request())
    assert said.token_ids == complete((5, 6, 7), 9, max_tokens=20, stop_token_ids=(2,))
    assert said.finish_reason == "stop"


async def test_completion_beyond_its_tokens_is_cut(running: Running) -> None:
    await running.admin.publish(PICO_DIRECTORY, V1.label)
    said = await running.engine.generate(request(max_tokens=3))
    assert (len(said.token_ids), said.finish_reason) == (3, "length")


async def test_server_that_was_never_published_to_serves_nobody(running: Running) -> None:
    with pytest.raises(EngineUnavailable, match="got one of default"):
        await running.engine.generate(request())


async def test_weights_that_are_not_there_are_not_published(
    running: Running, tmp_path: Path
) -> None:
    with pytest.raises(EngineUnavailable, match="no weights"):
        await running.admin.publish(tmp_path, V1.label)
    assert not await running.admin.is_paused()


async def test_other_key_is_refused(running: Running) -> None:
    async with VllmEngine(running.url, api_key="other") as stranger:
        with pytest.raises(ContractError, match="LOOPWRIGHT_ENGINE_API_KEY"):
            await stranger.generate(request())


async def test_publication_lets_completions_end_first(running: Running) -> None:
    await running.admin.publish(PICO_DIRECTORY, V1.label)
    await running.script(is_holding=True)
    under_way = asyncio.create_task(running.engine.generate(request()))
    await until_running(running, 1)
    published = asyncio.create_task(
        running.admin.publish(PICO_DIRECTORY, V2.label, in_flight="turn_end")
    )
    await until_paused(running)
    later = asyncio.create_task(running.engine.generate(request(policy=V2)))
    await running.script(is_holding=False)
    assert {span.version for span in (await under_way).version_spans} == {1}
    assert {span.version for span in (await later).version_spans} == {2}
    await published


async def test_completion_under_way_at_a_publication_has_both_versions(running: Running) -> None:
    await running.admin.publish(PICO_DIRECTORY, V1.label)
    await running.script(is_holding=True)
    under_way = asyncio.create_task(running.engine.generate(request(may_be_newer=True)))
    await until_running(running, 1)
    await running.admin.publish(PICO_DIRECTORY, V2.label, in_flight="re_prefill")
    await running.script(is_holding=False)
    assert [span.version for span in (await under_way).version_spans] == [1, 2]


async def test_every_call_is_named_by_its_turn(running: Running) -> None:
    await running.admin.publish(PICO_DIRECTORY, V1.label)
    said = [await running.engine.generate(request(seed=seed)) for seed in (1, 2, 1)]
    names = [turn_name((5, 6, 7), completion.token_ids) for completion in said]
    assert running.calls.read_text().split() == names
    assert names[0] == names[2] != names[1]


async def test_completion_whose_caller_is_gone_is_dropped(running: Running) -> None:
    await running.admin.publish(PICO_DIRECTORY, V1.label)
    await running.script(is_holding=True)
    under_way = asyncio.create_task(running.engine.generate(request()))
    await until_running(running, 1)
    under_way.cancel()
    await until_running(running, 0)


async def until_running(running: Running, number: int) -> None:
    while running.server.num_running != number:
        await asyncio.sleep(0.01)


async def until_paused(running: Running) -> None:
    while not await running.admin.is_paused():
        await asyncio.sleep(0.01)
