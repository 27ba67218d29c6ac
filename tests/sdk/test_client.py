"""The client of loops, on the real server with fake activities."""

import asyncio
import itertools
import re
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from loopwright.contracts.configs import EvaluationConfig, IterationConfig
from loopwright.contracts.failures import ContractError, LoopError, UserError
from loopwright.contracts.iterations import LoopProgress
from loopwright.sdk import LoopClient, LoopHandle
from loopwright.sdk.client import LoopRunsAlready
from loopwright.sdk.server_errors import translated
from tests.fakes import FakeActivities, Turnstile
from tests.workflows.conftest import small_config


async def until_phase(handle: LoopHandle, phase: str) -> LoopProgress:
    while (progress := await handle.progress()).phase != phase:
        await asyncio.sleep(0.02)
    return progress


async def until_training(fakes: FakeActivities) -> None:
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)


async def test_started_loop_gives_its_result(loops: LoopClient) -> None:
    handle = await loops.start(small_config(), loop_id="first")
    result = await handle.result()
    assert (result.loop_id, result.outcome, result.num_iterations) == ("first", "completed", 2)
    assert await handle.status() == "completed"


async def test_loop_without_an_id_gets_a_readable_one(loops: LoopClient) -> None:
    handle = await loops.start(small_config(num_iterations=0))
    assert handle.loop_id.startswith("loop-20")
    await handle.result()


async def test_id_of_a_running_loop_is_refused(loops: LoopClient, fakes: FakeActivities) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await loops.start(small_config(), loop_id="first")
    with pytest.raises(LoopRunsAlready, match="loopwright watch first"):
        await loops.start(small_config(), loop_id="first")
    fakes.hold["trainer.train_step"].set()
    await handle.result()


async def test_id_of_an_ended_loop_may_be_used_again(loops: LoopClient) -> None:
    await (await loops.start(small_config(num_iterations=1), loop_id="first")).result()
    again = await loops.start(small_config(num_iterations=2), loop_id="first")
    assert (await again.result()).num_iterations == 2


@pytest.mark.parametrize("loop_id", ["", "a/b", "-x", "a" * 65, "é", "a b", 7, b"x", "a\n"])
async def test_id_that_is_none_is_refused(loops: LoopClient, loop_id: str) -> None:
    with pytest.raises(UserError, match="loop id: expected"):
        await loops.start(small_config(), loop_id=loop_id)


async def test_unknown_loop_is_refused_with_near_ones(
    loops: LoopClient, temporal_client: Client
) -> None:
    await (await loops.start(small_config(num_iterations=0), loop_id="digits")).result()
    while not await loops.list_loops():
        await asyncio.sleep(0.05)
    with pytest.raises(UserError, match="no loop 'digit'; did you mean digits"):
        await loops.loop("digit")


async def test_loops_are_listed_once_each(loops: LoopClient) -> None:
    for loop_id in ("one", "two", "one"):
        await (await loops.start(small_config(num_iterations=0), loop_id=loop_id)).result()
    while len(listed := await loops.list_loops()) < 2:
        await asyncio.sleep(0.05)
    assert {summary.loop_id for summary in listed} == {"one", "two"}


async def test_watch_shows_every_iteration_and_ends_with_the_loop(loops: LoopClient) -> None:
    handle = await loops.start(small_config())
    states = [state async for state in handle.watch(every_seconds=0.01)]
    assert states[-1].phase == "ended"
    assert [row.index for row in states[-1].results] == [1, 2]
    assert all(one != other for one, other in itertools.pairwise(states))


async def test_paused_loop_goes_on_when_resumed(loops: LoopClient, fakes: FakeActivities) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await loops.start(small_config())
    await until_training(fakes)
    await handle.pause()
    fakes.hold["trainer.train_step"].set()
    assert len((await until_phase(handle, "paused")).results) == 1
    await handle.resume()
    assert (await handle.result()).num_iterations == 2


async def test_stopped_loop_gives_what_it_did(loops: LoopClient, fakes: FakeActivities) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await loops.start(small_config(num_iterations=5))
    await until_training(fakes)
    await handle.stop()
    fakes.hold["trainer.train_step"].set()
    result = await handle.result()
    assert (result.outcome, result.num_iterations) == ("stopped", 1)


async def listed(loops: LoopClient, status: str) -> None:
    """Wait until the one loop is listed so; what it never becomes times out."""
    while [loop.status for loop in await loops.list_loops()] != [status]:
        await asyncio.sleep(0.05)


async def test_what_a_loop_was_told_shows_in_the_list_and_the_description(
    loops: LoopClient, fakes: FakeActivities
) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await loops.start(small_config(num_iterations=5))
    await listed(loops, "running")
    await until_training(fakes)
    await handle.pause()
    await listed(loops, "pausing")
    await handle.resume()
    await listed(loops, "running")
    await handle.stop()
    await listed(loops, "stopping")
    assert (await handle.describe()).status == "stopping"
    fakes.hold["trainer.train_step"].set()
    await handle.result()
    await listed(loops, "stopped")
    description = await handle.describe()
    assert (description.status, description.failure) == ("stopped", None)
    assert description.progress is not None
    assert description.progress.status == "stopped"


async def test_paused_loop_is_listed_as_paused_and_after_all_as_completed(
    loops: LoopClient,
) -> None:
    handle = await loops.start(small_config(num_iterations=None, target_pass_rate=0.5))
    await handle.pause()
    await listed(loops, "paused")
    assert await handle.status() == "paused"
    await handle.run_iterations(2)
    await handle.resume()
    await handle.result()
    await listed(loops, "completed")


@pytest.mark.usefixtures("short_runs")
async def test_status_of_a_loop_that_was_paused_outlives_continue_as_new(
    loops: LoopClient, fakes: FakeActivities
) -> None:
    iteration = IterationConfig(num_tasks=1, group_size=2)
    config = small_config(num_iterations=4, iteration=iteration)
    go_on = fakes.hold["trainer.train_step"] = Turnstile(2)
    handle = await loops.start(config)
    while fakes.counts()["trainer.train_step"] < 3:
        await asyncio.sleep(0.02)
    await handle.pause()
    go_on.set()
    progress = await until_phase(handle, "paused")
    assert progress.iteration == 3
    await listed(loops, "paused")
    await handle.resume()
    await listed(loops, "running")
    assert (await handle.result()).num_iterations == 4


async def test_stopped_loop_is_watched_to_its_end(loops: LoopClient, fakes: FakeActivities) -> None:
    fakes.hold["trainer.train_step"] = asyncio.Event()
    handle = await loops.start(small_config())
    await until_training(fakes)
    states = handle.watch(every_seconds=0.01)
    await anext(states)
    await handle.stop()
    fakes.hold["trainer.train_step"].set()
    seen = [state.status async for state in states]
    assert seen[-1] == "stopped"
    assert set(seen) <= {"running", "stopping", "stopped"}


@pytest.mark.usefixtures("short_runs")
async def test_evaluations_include_those_the_progress_no_longer_has(loops: LoopClient) -> None:
    evaluation = EvaluationConfig(num_tasks=2, samples=1, at_start=False, at_end=False, every=1)
    iteration = IterationConfig(num_tasks=1, group_size=2)
    config = small_config(num_iterations=5, evaluation=evaluation, iteration=iteration)
    handle = await loops.start(config)
    await handle.result()
    assert [each.iteration for each in await handle.evaluations()] == [1, 2, 3, 4, 5]


async def test_open_loop_runs_the_iterations_it_is_asked_for(loops: LoopClient) -> None:
    handle = await loops.start(small_config(num_iterations=None))
    assert await handle.run_iterations(2) == 2
    while len((await handle.progress()).results) < 2:
        await asyncio.sleep(0.02)
    await until_phase(handle, "idle")
    await handle.stop()
    assert (await handle.result()).num_iterations == 2


async def test_ended_loop_refuses_to_be_operated(loops: LoopClient) -> None:
    handle = await loops.start(small_config(num_iterations=0), loop_id="first")
    await handle.result()
    with pytest.raises(UserError, match="first has ended"):
        await handle.pause()


async def test_failed_loop_raises_its_reason(loops: LoopClient, fakes: FakeActivities) -> None:
    fakes.failures["trainer.train_step"] = [
        ApplicationError("loss is nan", type="TrainingDiverged", non_retryable=True)
    ]
    handle = await loops.start(small_config(), loop_id="first")
    with pytest.raises(LoopError, match=r"loop first failed: iteration 1 failed: .*loss is nan"):
        await handle.result()
    description = await handle.describe()
    assert description.status == "failed"
    assert "loss is nan" in (description.failure or "")


async def test_description_has_the_configuration_and_progress(loops: LoopClient) -> None:
    handle = await loops.start(small_config(seed=7), loop_id="first")
    await handle.result()
    description = await handle.describe()
    assert description.config == small_config(seed=7)
    assert description.progress is not None
    assert len(description.progress.results) == 2


@pytest.mark.usefixtures("short_runs")
async def test_iterations_include_those_the_progress_no_longer_has(loops: LoopClient) -> None:
    handle = await loops.start(small_config(num_iterations=5))
    await handle.result()
    assert [row.index for row in await handle.iterations()] == [1, 2, 3, 4, 5]


async def test_server_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(UserError, match=rf"cannot reach Temporal at {address}.*loopwright up"):
        await LoopClient.connect(address)


@pytest.mark.parametrize(
    "address",
    ["", "localhost", "http://localhost:7233", "a b:1", "h:x", "h:0", "h:65536", "[zz]:1", 7233],
)
async def test_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="expected HOST:PORT"):
        await LoopClient.connect(address)


async def test_server_that_is_not_temporals_is_named() -> None:
    server = await asyncio.start_server(_answer_as_a_web_server, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        with pytest.raises(UserError, match=f"{address}: what answers there is no Temporal server"):
            await LoopClient.connect(address)


async def _answer_as_a_web_server(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await reader.readline()
    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    writer.close()


async def test_host_that_does_not_exist_is_named_in_plain_words() -> None:
    with pytest.raises(UserError, match="there is no host of this name; start it") as caught:
        await LoopClient.connect("nowhere.invalid:7233")
    assert "(" not in str(caught.value).replace("(`loopwright up`)", "")


@pytest.mark.parametrize("namespace", ["nowhere", "a b", "x" * 300])
async def test_namespace_that_is_missing_is_named_at_once(
    temporal_client: Client, namespace: str
) -> None:
    address = temporal_client.service_client.config.target_host
    with pytest.raises(UserError, match=rf"{address} has no namespace '{namespace}'; create it"):
        await LoopClient.connect(address, namespace=namespace)


async def misuse(loops: LoopClient, call: str, value: Any) -> None:
    """Make one call with one wrong value."""
    handle = LoopHandle(loops._client, "first")
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "config": lambda: loops.start(value),
        "limit": lambda: loops.list_loops(limit=value),
        "num_iterations": lambda: handle.run_iterations(value),
        "now": lambda: handle.stop(now=value),
        "every_seconds": lambda: anext(handle.watch(every_seconds=value)),
        "Temporal's namespace": lambda: LoopClient.connect("127.0.0.1:1", namespace=value),
    }
    await calls[call]()


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("config", [{}, None, "loop.yaml"]),
        ("limit", [0, -1, True, "5", 2.0, None]),
        ("num_iterations", [0, -1, True, "5", 100_001, 1.5]),
        ("now", ["yes", 1, None]),
        ("every_seconds", [0, -1, "1", True, float("nan"), float("inf")]),
        ("Temporal's namespace", ["", None, 3]),
    ],
)
async def test_wrong_value_of_a_call_is_named_before_anything_is_sent(
    loops: LoopClient, call: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(UserError, match=rf"^{call}: expected .*got {re.escape(repr(value))}$"):
            await misuse(loops, call, value)


async def test_missing_search_attribute_is_named_with_what_to_do() -> None:
    message = "Namespace default has no mapping defined for search attribute LoopName"
    refused = RPCError(message, RPCStatusCode.INVALID_ARGUMENT, b"")
    advice = r"attribute LoopName; register all of .*attributes.yaml"
    with pytest.raises(UserError, match=advice), translated("first"):
        raise refused


async def test_loop_of_another_version_is_told_from_one_that_fails(
    loops: LoopClient, temporal_client: Client
) -> None:
    await temporal_client.start_workflow(
        "Loop",
        {"loop_id": "first", "config": {"no_such_key": 1}},
        id="loop/first",
        task_queue="nobody",
    )
    handle = await loops.loop("first")
    with pytest.raises(ContractError, match=r"^loop first was started by another version[^\n]*$"):
        await handle.config()
