"""Messages, tool calls, and the record that commits a turn."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from loopwright.contracts.base import SCHEMA_VERSION, Contract
from loopwright.contracts.commands import CommandRecord
from loopwright.contracts.policies import VersionSpan

JsonObject = dict[str, Any]


class Message(Contract):
    """One message of a conversation, as chat templates know it."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str


class ToolCall(Contract):
    """A call of a named tool by the model."""

    name: str
    arguments: JsonObject = Field(default_factory=dict)


class StopReason(StrEnum):
    """Why an episode ended."""

    COMPLETED = "completed"
    MAX_TURNS = "max_turns"
    MAX_TOKENS = "max_tokens"
    TIMEOUT = "timeout"
    PARSE_ERROR = "parse_error"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PARKED = "parked"

    @property
    def is_truncated(self) -> bool:
        """Whether a limit of ours ended the episode."""
        return self in (StopReason.MAX_TURNS, StopReason.MAX_TOKENS, StopReason.TIMEOUT)


class TurnRecord(Contract):
    """What a turn committed to the store before the next one began.

    Records form a hash chain: each names its parent's digest, and the request it belongs to by
    its fingerprint.
    """

    schema_version: int = SCHEMA_VERSION
    index: int
    """Turn index, from 0."""
    parent: str
    """Digest of the record before this one; empty for the first."""
    fingerprint: str
    """Digest of the episode's request; a record of another request is not found."""
    prompt_ids: tuple[int, ...]
    """Token ids given to the engine, the whole conversation so far."""
    completion_ids: tuple[int, ...]
    """Token ids the engine returned."""
    behaviour_logprobs: tuple[float, ...]
    """Natural log of the sampling probability of each completion token, as sampled."""
    version_spans: tuple[VersionSpan, ...]
    """Policy version of each span of completion tokens; covers all of them."""
    finish_reason: str
    """The engine's word on the completion: stop or length."""
    messages: tuple[Message, ...]
    """What the environment replied, empty at the end."""
    state: JsonObject
    """The environment's state after this turn."""
    workspace: str | None = None
    """Digest of the workspace after this turn."""
    commands: tuple[CommandRecord, ...] = ()
    """Commands that the environment ran to reply, in the order of their ends."""
    turn_reward: float = 0.0
    """The environment's reward for this turn alone."""
    seconds: float = 0.0
    """Wall-clock time the turn took, from prompt to reply."""
    stop_reason: StopReason | None = None
    """Why the episode ended with this turn; None when it goes on."""


class TurnHead(Contract):
    """The newest committed turn of an episode: where a resumed one goes on."""

    num_turns: int
    digest: str
    """Digest of the newest record; empty before the first turn."""
