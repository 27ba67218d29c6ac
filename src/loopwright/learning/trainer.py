"""A model with its optimiser: minibatches in, updated weights and metrics out.

Dropout is off while training: the distribution that is trained is the one that was sampled.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from transformers import PreTrainedModel

from loopwright.contracts.configs import TrainConfig
from loopwright.contracts.failures import TrainingDiverged
from loopwright.learning.batches import Batch, Microbatch, microbatches, minibatches
from loopwright.learning.losses import Loss, TrainedTokens, clipped_policy_gradient
from loopwright.learning.metrics import UpdateMetrics

_BETAS = (0.9, 0.95)
"""Decay of AdamW's moments; the second is short, for gradients change from batch to batch."""


class Trainer:
    """One policy being trained; holds the weights and AdamW's moments between updates."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Take the model as it is, on its device."""
        self.model = model
        self.model.train(False)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=_BETAS)

    def reinforce(
        self, batch: Batch, config: TrainConfig, *, version: int, temperature: float, seed: int
    ) -> dict[str, float]:
        """Take the optimiser steps of one iteration, and give its metrics.

        Args:
            batch: trajectories with their advantages.
            config: learning rate, clipping, minibatches.
            version: policy version of the weights as they are now.
            temperature: what the batch was sampled at.
            seed: draws which group falls into which minibatch.

        Raises:
            TrainingDiverged: a number is not finite, or the behaviour logprobs are not those of
                this version; the weights are not to be used any more.
        """
        torch.manual_seed(seed)
        metrics = UpdateMetrics(config, version=version)
        loss = clipped_policy_gradient(config.clip_low, config.clip_high)
        for rows in minibatches(batch, config.num_minibatches, seed=seed):
            parts = microbatches(batch, rows, max_tokens=config.tokens_per_microbatch)
            self._accumulate(parts, loss, metrics, temperature=temperature)
            metrics.check_mismatch()
            self.step(config, metrics)
        return metrics.result()

    def imitate(self, batch: Batch, config: TrainConfig, loss: Loss) -> float:
        """Take one optimiser step on a whole batch, and give its loss."""
        metrics = UpdateMetrics(config, version=0)
        rows = torch.arange(len(batch.lengths_R))
        parts = microbatches(batch, rows, max_tokens=config.tokens_per_microbatch)
        self._accumulate(parts, loss, metrics, temperature=1.0)
        self.step(config, metrics)
        return metrics.result()["loss"]

    def trained_tokens(self, microbatch: Microbatch, *, temperature: float) -> TrainedTokens:
        """Run the model forward, and give the logprobs of the trained tokens."""
        part = microbatch.to(self.model.device)
        output = self.model(
            input_ids=part.token_ids_B_T, attention_mask=part.attention_mask_B_T, use_cache=False
        )
        # The logits at one position are those of the token at the next.
        mask = part.loss_mask_B_T[:, 1:]
        logits_N_V = output.logits[:, :-1][mask].float() / temperature
        logprobs_N_V = logits_N_V.log_softmax(-1)
        targets_N = part.token_ids_B_T[:, 1:][mask]
        return TrainedTokens(
            trainer_logprobs_N=logprobs_N_V.gather(-1, targets_N.unsqueeze(-1)).squeeze(-1),
            entropies_N=_entropies(logprobs_N_V.detach()),
            behaviour_logprobs_N=part.behaviour_logprobs_B_T[:, 1:][mask],
            advantages_N=part.advantages_B.unsqueeze(-1).expand_as(mask)[mask],
            versions_N=part.versions_B_T[:, 1:][mask],
        )

    def step(self, config: TrainConfig, metrics: UpdateMetrics) -> None:
        """Clip the accumulated gradient and take one optimiser step.

        Raises:
            TrainingDiverged: the gradient is not finite; the weights are as they were.
        """
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.max_grad_norm))
        if not math.isfinite(norm):
            self.optimizer.zero_grad(set_to_none=True)
            raise TrainingDiverged(f"the gradient norm is {norm}; the step was not taken")
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate
            group["weight_decay"] = config.weight_decay
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        metrics.add_step(norm)

    def _accumulate(
        self,
        parts: Iterable[Microbatch],
        loss: Loss,
        metrics: UpdateMetrics,
        *,
        temperature: float,
    ) -> None:
        """Add up the gradient of the mean loss over the trained tokens of all parts."""
        todo = list(parts)
        num_tokens = sum(int(part.loss_mask_B_T[:, 1:].sum()) for part in todo)
        for part in todo:
            tokens = self.trained_tokens(part, temperature=temperature)
            losses = loss(tokens)
            (losses.sum() / num_tokens).backward()  # type: ignore[no-untyped-call]
            metrics.add(tokens, losses)


def _entropies(logprobs_N_V: Tensor) -> Tensor:
    return -(logprobs_N_V.exp() * logprobs_N_V).sum(-1)
