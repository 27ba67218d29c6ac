"""What is known of an update: the loss, how far the policy moved, and how exact the engine was."""

import torch
from torch import Tensor

from loopwright.contracts.configs import TrainConfig
from loopwright.contracts.failures import TrainingDiverged
from loopwright.learning.losses import TrainedTokens, is_clipped


class UpdateMetrics:
    """Sums over the tokens of an update; means when it is done."""

    def __init__(self, config: TrainConfig) -> None:
        """Measure an update of this configuration."""
        self._config = config
        self._sums: dict[str, float] = {}
        self._num_tokens = 0
        self._norms: list[float] = []
        self._mismatches: list[Tensor] = []

    def add(self, tokens: TrainedTokens, losses_N: Tensor) -> None:
        """Count the tokens of one microbatch."""
        with torch.no_grad():
            log_ratios = tokens.log_ratios()
            ratios = log_ratios.exp()
            clipped = is_clipped(tokens, self._config.clip_low, self._config.clip_high)
            self._add_sum("loss", losses_N)
            self._add_sum("entropy", tokens.entropies_N)
            self._add_sum("ratio", ratios)
            self._add_sum("clip_fraction", clipped.float())
            self._add_sum("kl", ratios - 1 - log_ratios)
            self._num_tokens += len(losses_N)
            if not self._norms:
                self._mismatches.append(log_ratios.abs().cpu())

    def add_step(self, gradient_norm: float) -> None:
        """Count one optimiser step."""
        self._norms.append(gradient_norm)

    def check_mismatch(self) -> None:
        """Refuse behaviour logprobs that are not this policy's, before the first step.

        Raises:
            TrainingDiverged: the mean of |trainer - behaviour logprob| is too large, or no number.
        """
        mean = float(torch.cat(self._mismatches).mean())
        if not mean <= self._config.max_mismatch:
            raise TrainingDiverged(
                f"the behaviour logprobs differ by {mean:.4f} on average from those of the "
                f"checkpoint being trained, expected at most {self._config.max_mismatch} "
                "(train.max_mismatch): the engine served other weights, or computes them otherwise"
            )

    def result(self) -> dict[str, float]:
        """Give the means by name.

        ``mismatch_mean`` and ``mismatch_max`` are |trainer - behaviour logprob| over the tokens of
        the first step, in which the weights are those that sampled; ``mismatch_prob_error`` is the
        mean of exp of it. All other means are over all tokens, ``kl`` in the k3 form of
        ratio - 1 - log ratio.
        """
        mismatch = torch.cat(self._mismatches)
        means = {name: value / self._num_tokens for name, value in self._sums.items()}
        return {
            **means,
            "gradient_norm": sum(self._norms) / len(self._norms),
            "num_steps": float(len(self._norms)),
            "num_tokens": float(self._num_tokens),
            "mismatch_mean": float(mismatch.mean()),
            "mismatch_max": float(mismatch.max()),
            "mismatch_prob_error": float(mismatch.exp().mean()),
        }

    def _add_sum(self, name: str, values_N: Tensor) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + float(values_N.sum())
