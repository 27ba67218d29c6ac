"""What is known of an update: the loss, how far the policy moved, and how exact the engine was."""

import torch
from torch import Tensor

from loopwright.contracts.configs import TrainConfig
from loopwright.contracts.failures import TrainingDiverged
from loopwright.learning.losses import TrainedTokens, is_clipped


class UpdateMetrics:
    """Sums over the tokens of an update; means when it is done."""

    def __init__(self, config: TrainConfig, *, version: int) -> None:
        """Measure an update of this configuration, of the weights of this policy version."""
        self._config = config
        self._version = version
        self._sums: dict[str, float] = {}
        self._num_tokens = 0
        self._norms: list[float] = []
        self._mismatches: list[Tensor] = []
        self._ages: list[Tensor] = []

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
            self._add_sum("mean_age", (self._version - tokens.versions_N).float())
            self._num_tokens += len(losses_N)
            if not self._norms:
                self._mismatches.append(log_ratios.abs().cpu())
                self._ages.append((self._version - tokens.versions_N).cpu())

    def add_step(self, gradient_norm: float) -> None:
        """Count one optimiser step."""
        self._norms.append(gradient_norm)

    def check_mismatch(self) -> None:
        """Refuse behaviour logprobs that are not this policy's, before the first step.

        Only tokens that this very version sampled can tell; where there are none, nothing is
        refused.

        Raises:
            TrainingDiverged: the mean of |trainer - behaviour logprob| is too large, or no number.
        """
        mismatch = self._mismatch_by_age().get(0)
        if mismatch is None:
            return
        mean = float(mismatch.mean())
        if not mean <= self._config.max_mismatch:
            raise TrainingDiverged(
                f"the behaviour logprobs differ by {mean:.4f} on average from those of the "
                f"checkpoint being trained, expected at most {self._config.max_mismatch} "
                "(train.max_mismatch): the engine served other weights, or computes them otherwise"
            )

    def result(self) -> dict[str, float]:
        """Give the means by name.

        ``mismatch_mean`` and ``mismatch_max`` are |trainer - behaviour logprob| over the tokens of
        the first step that the weights of that step sampled; ``mismatch_prob_error`` is the mean
        of exp of it. Tokens of a version k before it have ``mismatch_mean_age_k``, in which the
        change of the policy is, too. All other means are over all tokens, ``kl`` in the k3 form of
        ratio - 1 - log ratio; ``mean_age`` is in versions.
        """
        means = {name: value / self._num_tokens for name, value in self._sums.items()}
        return {
            **means,
            "gradient_norm": sum(self._norms) / len(self._norms),
            "num_steps": float(len(self._norms)),
            "num_tokens": float(self._num_tokens),
            **_mismatch_metrics(self._mismatch_by_age()),
        }

    def _mismatch_by_age(self) -> dict[int, Tensor]:
        """Divide |trainer - behaviour logprob| of the first step by the age of the token."""
        mismatch, ages = torch.cat(self._mismatches), torch.cat(self._ages)
        return {age: mismatch[ages == age] for age in sorted(set(ages.tolist()))}

    def _add_sum(self, name: str, values_N: Tensor) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + float(values_N.sum())


def _mismatch_metrics(by_age: dict[int, Tensor]) -> dict[str, float]:
    found = {f"mismatch_mean_age_{age}": float(by_age[age].mean()) for age in by_age if age}
    if 0 in by_age:
        found["mismatch_mean"] = float(by_age[0].mean())
        found["mismatch_max"] = float(by_age[0].max())
        found["mismatch_prob_error"] = float(by_age[0].exp().mean())
    return found
