"""What only the worker beside a vLLM server does to it: publish versions, and look after it."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import pydantic

from loopwright.adapters.vllm_http import Closing, VllmHttp
from loopwright.contracts.engines import InFlight
from loopwright.contracts.failures import EngineUnavailable, LoopError

UNPUBLISHED = "unpublished"
"""Label of weights that may be half loaded; no policy version has it."""

Model = TypeVar("Model", bound=pydantic.BaseModel)

_logger = logging.getLogger(__name__)


class _WeightInfo(pydantic.BaseModel):
    weight_version: str


class _PauseInfo(pydantic.BaseModel):
    is_paused: bool


class _ResetInfo(pydantic.BaseModel):
    success: bool


class VllmAdmin(Closing):
    """The administrative endpoints of one vLLM server; an asynchronous context."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        answer_seconds: float = 30.0,
        reload_seconds: float = 480.0,
    ) -> None:
        """Name the server.

        Args:
            base_url: URL without a path.
            api_key: bearer token.
            answer_seconds: longest time for a small request.
            reload_seconds: longest time to read a set of weights.
        """
        self._http = VllmHttp(base_url, api_key=api_key)
        self._answer_seconds = answer_seconds
        self._reload_seconds = reload_seconds

    async def served_label(self) -> str:
        """Give the label of the version that samples now; ``default`` after a restart.

        Raises:
            EngineUnavailable: the server does not answer.
        """
        return _read(_WeightInfo, await self._get("/weight_info")).weight_version

    async def is_paused(self) -> bool:
        """Tell whether requests wait for a resume."""
        return _read(_PauseInfo, await self._get("/is_paused")).is_paused

    async def is_healthy(self) -> bool:
        """Tell whether the server answers and its engine lives."""
        try:
            await self._get("/health")
        except LoopError:
            return False
        return True

    async def pause(self, *, drain: bool = False) -> None:
        """Hold requests back; those under way end first (``drain``), or keep their tokens."""
        await self._post(
            "/pause",
            parameters={"mode": "wait" if drain else "keep"},
            seconds=self._reload_seconds if drain else None,
        )

    async def resume(self) -> None:
        """Let requests go on; no effect when they do."""
        await self._post("/resume")

    async def publish(
        self, directory: Path, label: str, *, in_flight: InFlight = "re_prefill"
    ) -> None:
        """Make the weights of ``directory`` the ones that sample, under ``label``.

        Whatever fails in between, requests are not left waiting, and weights that may be half
        loaded have a label that nobody asks for. A completion under way ends with two labels,
        unless it is let end first.

        Raises:
            EngineUnavailable: the server failed, or the version read back is another.
            ContractError: the server refuses.
        """
        try:
            await self.pause(drain=in_flight == "turn_end")
            await self._set_label(UNPUBLISHED)
            await self._reload(directory)
            await self._forget_keys_and_values(also_of_running=in_flight != "keep")
            await self._set_label(label)
        except BaseException:
            await asyncio.shield(self._repair())
            raise
        await self.resume()
        await self._read_back(label)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def _set_label(self, label: str) -> None:
        await self._post("/update_weight_version", body={"new_version": label})

    async def _reload(self, directory: Path) -> None:
        await self._post(
            "/collective_rpc",
            body={"method": "reload_weights", "kwargs": {"weights_path": str(directory.resolve())}},
            seconds=self._reload_seconds,
        )

    async def _forget_keys_and_values(self, *, also_of_running: bool) -> None:
        answer = await self._post(
            "/reset_prefix_cache",
            parameters={"reset_running_requests": "true"} if also_of_running else None,
        )
        if also_of_running and not _read(_ResetInfo, answer).success:
            raise EngineUnavailable("the engine kept keys and values of the version before")

    async def _repair(self) -> None:
        try:
            await self.resume()
        except LoopError as error:
            _logger.warning("engine left paused after a failed publication: %s", error)

    async def _read_back(self, label: str) -> None:
        served = await self.served_label()
        if served != label:
            raise EngineUnavailable(f"published {label}, but the engine serves {served}")
        if await self.is_paused():
            raise EngineUnavailable(f"published {label}, but the engine is still paused")

    async def _get(self, path: str) -> bytes:
        return await self._http.request("GET", path, total_seconds=self._answer_seconds)

    async def _post(
        self,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        parameters: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> bytes:
        return await self._http.request(
            "POST",
            path,
            body=body,
            parameters=parameters,
            total_seconds=seconds or self._answer_seconds,
        )


def _read(model: type[Model], content: bytes) -> Model:
    try:
        return model.model_validate_json(content)
    except pydantic.ValidationError as error:
        raise EngineUnavailable(f"the engine's answer is not what vLLM gives: {error}") from error
