"""Fake of the engine, for unit tests."""

from collections.abc import Callable, Iterable, Sequence

from loopwright.contracts.engines import Completion, GenerateRequest
from loopwright.contracts.failures import EngineUnavailable
from loopwright.contracts.policies import VersionSpan
from loopwright.core.protocols import Engine

Script = Callable[[GenerateRequest], Sequence[int]]


class ScriptedEngine(Engine):
    """Gives the completions it was told to, as the version it was asked for.

    Example:
        ``ScriptedEngine([[7, 8, 1], [9, 1]])`` answers twice and is then unavailable;
        ``ScriptedEngine(lambda request: [request.token_ids[-1], 1])`` answers for ever.
    """

    LOGPROB = -0.5
    """Behaviour logprob of every token."""

    def __init__(self, script: Script | Iterable[Sequence[int] | EngineUnavailable]) -> None:
        """Take a function of the request, or answers in order; an error among them is raised."""
        self.requests: list[GenerateRequest] = []
        """What was asked, in order."""
        self._script = script if callable(script) else _in_order(script)

    async def generate(self, request: GenerateRequest) -> Completion:
        """Give the next completion, cut at ``max_tokens``."""
        self.requests.append(request)
        token_ids = tuple(self._script(request))[: request.max_tokens]
        is_stopped = token_ids[-1] in request.stop_token_ids
        return Completion(
            token_ids=token_ids,
            behaviour_logprobs=(self.LOGPROB,) * len(token_ids),
            finish_reason="stop" if is_stopped else "length",
            version_spans=(
                VersionSpan(version=request.policy.version, start=0, end=len(token_ids)),
            ),
        )


def _in_order(answers: Iterable[Sequence[int] | EngineUnavailable]) -> Script:
    remaining = iter(answers)

    def answer(_request: GenerateRequest) -> Sequence[int]:
        found = next(remaining, EngineUnavailable("the script has ended"))
        if isinstance(found, EngineUnavailable):
            raise found
        return found

    return answer
