"""What an episode may still spend: turns, tokens and seconds."""

from loopwright.contracts.configs import EpisodeConfig
from loopwright.contracts.policies import SamplingParams
from loopwright.contracts.turns import StopReason


def completion_tokens(
    prompt_tokens: int, *, sampling: SamplingParams, budgets: EpisodeConfig
) -> int:
    """Return how many tokens the next completion may have; 0 when the budget is spent."""
    return max(0, min(sampling.max_tokens, budgets.max_tokens - prompt_tokens))


def stop_before_turn(
    *,
    prompt_tokens: int,
    seconds_spent: float,
    sampling: SamplingParams,
    budgets: EpisodeConfig,
) -> StopReason | None:
    """Say why no further turn may begin; None when one may.

    Args:
        prompt_tokens: tokens of the conversation so far.
        seconds_spent: wall-clock time of the turns so far.
        sampling: how completions are sampled.
        budgets: the episode's budgets.
    """
    if seconds_spent >= budgets.max_seconds:
        return StopReason.TIMEOUT
    if completion_tokens(prompt_tokens, sampling=sampling, budgets=budgets) == 0:
        return StopReason.MAX_TOKENS
    return None


def stop_after_turn(
    *, num_turns: int, finish_reason: str, asked: StopReason | None, budgets: EpisodeConfig
) -> StopReason | None:
    """Say why the episode ends with this turn; None when it goes on.

    A completion that was cut is a limit of ours, whatever the environment made of it.

    Args:
        num_turns: turns taken, this one included.
        finish_reason: the engine's word on the completion.
        asked: the environment's own wish to stop.
        budgets: the episode's budgets.
    """
    if finish_reason == "length":
        return StopReason.MAX_TOKENS
    if asked is not None:
        return asked
    if num_turns >= budgets.max_turns:
        return StopReason.MAX_TURNS
    return None
