"""The engine as a vLLM server, token ids in and out.

A completion is given only if every token of it was sampled by a version that may: a server that was
restarted, or is being given another policy, is unavailable rather than wrong.
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Literal

import pydantic

from loopwright.adapters.vllm_http import Closing, VllmHttp
from loopwright.adapters.vllm_metrics import engine_load
from loopwright.contracts.engines import Completion, GenerateRequest
from loopwright.contracts.failures import EngineUnavailable
from loopwright.contracts.policies import VersionSpan
from loopwright.core.concurrency import EngineLoad
from loopwright.core.protocols import Engine

_PATH = "/inference/v1/generate"
# Well below the time for which an answer counts.
_LOAD_SECONDS = 5.0

# The server writes -9999 for a log probability that is not a number or of probability zero.
_Logprob = Annotated[float, pydantic.Field(gt=-9999.0, le=1e-4, allow_inf_nan=False)]


class _Token(pydantic.BaseModel):
    token_id: int
    logprob: _Logprob


class _Logprobs(pydantic.BaseModel):
    content: list[_Token]


class _Span(pydantic.BaseModel):
    version: str
    start: int
    end: int


class _Choice(pydantic.BaseModel):
    token_ids: Annotated[list[int], pydantic.Field(min_length=1)]
    logprobs: _Logprobs
    finish_reason: Literal["stop", "length"]
    weight_versions: list[_Span]


class _Answer(pydantic.BaseModel):
    choices: Annotated[list[_Choice], pydantic.Field(min_length=1, max_length=1)]


class VllmEngine(Closing, Engine):
    """Completions of one vLLM server; an asynchronous context that closes its connections."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        total_seconds: float = 900.0,
        idle_seconds: float = 600.0,
    ) -> None:
        """Name the server; connections open with the first request.

        Args:
            base_url: URL without a path.
            api_key: bearer token.
            total_seconds: longest time for one completion.
            idle_seconds: longest silence; the server says nothing until a completion is whole.
        """
        self._http = VllmHttp(base_url, api_key=api_key)
        self._total_seconds = total_seconds
        self._idle_seconds = idle_seconds

    async def generate(self, request: GenerateRequest) -> Completion:
        """Sample one completion by a version that may sample it.

        Raises:
            EngineUnavailable: the engine does not answer, or serves another version.
            ContractError: the engine refuses the request, say because its context is too short.
        """
        content = await self._http.request(
            "POST",
            _PATH,
            body=_body(request),
            total_seconds=self._total_seconds,
            idle_seconds=self._idle_seconds,
        )
        try:
            choice = _Answer.model_validate_json(content).choices[0]
        except pydantic.ValidationError as error:
            raise EngineUnavailable(f"{self._http.base_url}: not a completion: {error}") from error
        _check_logprobs(choice)
        return _completion(choice, _versions(choice, request))

    async def load(self) -> EngineLoad | None:
        """Say how busy the server is; None where it keeps no statistics.

        Raises:
            EngineUnavailable: it does not answer.
        """
        content = await self._http.request("GET", "/metrics", total_seconds=_LOAD_SECONDS)
        return engine_load(content.decode(errors="replace"))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _body(request: GenerateRequest) -> dict[str, object]:
    sampling = request.sampling
    return {
        "token_ids": request.token_ids,
        "cache_salt": _cache_salt(request),
        "sampling_params": {
            "max_tokens": request.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "logprobs": 0,
            "seed": request.seed,
            "stop_token_ids": request.stop_token_ids,
            # The request alone says what ends a completion, not the model's files.
            "ignore_eos": True,
            "detokenize": False,
        },
    }


def _cache_salt(request: GenerateRequest) -> str:
    """Keep keys and values of one version from serving another, or another policy.

    A publication forgets them; the label's digest makes sure where the version is known ahead.
    """
    policy = request.policy
    name = policy.policy_id if request.may_be_newer else policy.label
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _check_logprobs(choice: _Choice) -> None:
    scored = [token.token_id for token in choice.logprobs.content]
    if scored != choice.token_ids:
        raise EngineUnavailable(
            f"logprobs of {len(scored)} tokens do not belong to the {len(choice.token_ids)} tokens "
            "of the completion"
        )


def _versions(choice: _Choice, request: GenerateRequest) -> list[int]:
    """Give the version of each span; each must be one that may sample."""
    versions = [request.policy.version_of(span.version) for span in choice.weight_versions]
    for span, version in zip(choice.weight_versions, versions, strict=True):
        if version is None or not _may_sample(version, request):
            least = " or a later one" if request.may_be_newer else ""
            raise EngineUnavailable(
                f"expected a completion of {request.policy.label}{least}, got one of {span.version}"
            )
    if not _covers(choice.weight_versions, len(choice.token_ids)):
        raise EngineUnavailable(
            f"version spans {choice.weight_versions} do not cover {len(choice.token_ids)} tokens"
        )
    return [version for version in versions if version is not None]


def _may_sample(version: int, request: GenerateRequest) -> bool:
    asked = request.policy.version
    return version == asked or (request.may_be_newer and version > asked)


def _covers(spans: Sequence[_Span], num_tokens: int) -> bool:
    ends = [0, *(span.end for span in spans)]
    starts = [*(span.start for span in spans), num_tokens]
    return ends == starts


def _completion(choice: _Choice, versions: Sequence[int]) -> Completion:
    return Completion(
        token_ids=tuple(choice.token_ids),
        behaviour_logprobs=tuple(token.logprob for token in choice.logprobs.content),
        finish_reason=choice.finish_reason,
        version_spans=tuple(
            VersionSpan(version=version, start=span.start, end=span.end)
            for span, version in zip(choice.weight_versions, versions, strict=True)
        ),
    )
