"""Losses by token: one function each, the source and the denominator in its docstring."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_MAX_LOG_RATIO = 20.0
"""Log ratios are clamped to it before they are exponentiated."""


@dataclass(frozen=True, slots=True)
class TrainedTokens:
    """The trained tokens of one forward pass, ``(N,)`` each."""

    trainer_logprobs_N: Tensor
    """Under the weights being trained; carries the gradient."""
    entropies_N: Tensor
    """Entropy of the distribution each token was drawn from, in nats; no gradient."""
    behaviour_logprobs_N: Tensor
    advantages_N: Tensor
    versions_N: Tensor
    """Policy version that sampled each token."""

    def log_ratios(self) -> Tensor:
        """Give trainer minus behaviour logprobs, clamped, ``(N,)``."""
        difference = self.trainer_logprobs_N - self.behaviour_logprobs_N
        return difference.clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)


Loss = Callable[[TrainedTokens], Tensor]
"""Gives the loss of each token, ``(N,)``; the trainer divides the sum by the step's tokens."""


def clipped_policy_gradient(clip_low: float, clip_high: float) -> Loss:
    """Build -min(u A, clip(u, 1 - clip_low, 1 + clip_high) A), u = exp(trainer - behaviour).

    PPO's clipped objective (arXiv 1707.06347) on group advantages (GRPO, arXiv 2402.03300) with the
    wider upper bound of DAPO (arXiv 2503.14476). The denominator is the number of trained tokens of
    the whole minibatch, over all of its microbatches (DAPO's token mean).
    """

    def loss(tokens: TrainedTokens) -> Tensor:
        ratios = tokens.log_ratios().exp()
        clipped = ratios.clamp(1 - clip_low, 1 + clip_high)
        return -torch.minimum(ratios * tokens.advantages_N, clipped * tokens.advantages_N)

    return loss


def imitation(tokens: TrainedTokens) -> Tensor:
    """Give -log p, the cross entropy of supervised tuning, over the minibatch's trained tokens."""
    return -tokens.trainer_logprobs_N


def is_clipped(tokens: TrainedTokens, clip_low: float, clip_high: float) -> Tensor:
    """Tell which tokens the clip keeps from changing the policy, ``(N,)``."""
    ratios = tokens.log_ratios().exp()
    too_high = (ratios > 1 + clip_high) & (tokens.advantages_N > 0)
    too_low = (ratios < 1 - clip_low) & (tokens.advantages_N < 0)
    return too_high | too_low
