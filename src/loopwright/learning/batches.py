"""Trajectories become tensors: one flat batch an iteration, padded microbatches on the way.

Shape letters: R samples of a batch, N tokens, B samples of a microbatch, T its longest sample.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from loopwright.contracts.failures import ContractError
from loopwright.trajectories.trajectory import Sample


@dataclass(frozen=True, slots=True)
class Row:
    """One sample with the credit of its episode."""

    sample: Sample
    advantage: float
    group: int
    """Index of the episode's group in the batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The samples of one iteration, end to end."""

    token_ids_N: Tensor
    """int32 ``(N,)``."""
    loss_mask_N: Tensor
    """bool ``(N,)``; the first token of a sample is never trained."""
    behaviour_logprobs_N: Tensor
    """float32 ``(N,)``, natural log, as sampled."""
    versions_N: Tensor
    """int32 ``(N,)``, policy version that sampled each token; -1 where none did."""
    lengths_R: Tensor
    """int64 ``(R,)``, tokens of each sample."""
    advantages_R: Tensor
    """float32 ``(R,)``, the advantage of the sample's episode."""
    groups_R: Tensor
    """int64 ``(R,)``, the group of the sample's episode."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Batch":
        """Join rows; none is no batch."""
        if not rows:
            raise ValueError("a batch needs at least one sample")
        return cls(
            token_ids_N=torch.tensor(_joined(row.sample.token_ids for row in rows)).int(),
            loss_mask_N=torch.tensor(_joined(row.sample.loss_mask for row in rows)).bool(),
            behaviour_logprobs_N=torch.tensor(
                _joined(row.sample.behaviour_logprobs for row in rows)
            ).float(),
            versions_N=torch.tensor(_joined(row.sample.versions for row in rows)).int(),
            lengths_R=torch.tensor([len(row.sample.token_ids) for row in rows]),
            advantages_R=torch.tensor([row.advantage for row in rows]).float(),
            groups_R=torch.tensor([row.group for row in rows]),
        )

    @property
    def num_trained_tokens(self) -> int:
        """Count the tokens that the loss is over."""
        return int(self.loss_mask_N.sum())


@dataclass(frozen=True, slots=True)
class Microbatch:
    """What one forward pass takes, padded on the right."""

    token_ids_B_T: Tensor
    attention_mask_B_T: Tensor
    loss_mask_B_T: Tensor
    behaviour_logprobs_B_T: Tensor
    versions_B_T: Tensor
    advantages_B: Tensor

    def to(self, device: torch.device) -> "Microbatch":
        """Move every tensor to a device."""
        return Microbatch(*(getattr(self, f.name).to(device) for f in fields(self)))


def encode(batch: Batch) -> bytes:
    """Code a batch as safetensors; equal batches give equal bytes."""
    return safetensors.torch.save({f.name: getattr(batch, f.name) for f in fields(batch)})


def decode(data: bytes) -> Batch:
    """Read a batch back.

    Raises:
        ContractError: the bytes are no batch.
    """
    try:
        return Batch(**safetensors.torch.load(data))
    except (SafetensorError, TypeError) as error:
        raise ContractError(f"not a training batch: {error}") from error


def minibatches(batch: Batch, count: int, *, seed: int) -> list[Tensor]:
    """Divide the groups among ``count`` optimiser steps, whole, in an order drawn from a seed.

    Returns:
        Row indices of each minibatch; fewer than ``count`` when there are fewer groups.
    """
    groups = torch.tensor(sorted(set(batch.groups_R.tolist())))
    order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
    shares = groups[order].tensor_split(min(count, len(groups)))
    return [torch.isin(batch.groups_R, share).nonzero().flatten() for share in shares]


def microbatches(batch: Batch, rows: Tensor, *, max_tokens: int) -> Iterator[Microbatch]:
    """Pad samples of similar length together, at most ``max_tokens`` with the padding.

    A sample longer than that is a microbatch of its own.
    """
    lengths = batch.lengths_R[rows]
    pending: list[int] = []
    longest = 0
    for row in rows[lengths.argsort(stable=True)].tolist():
        longest = max(longest, int(batch.lengths_R[row]))
        if pending and longest * (len(pending) + 1) > max_tokens:
            yield _padded(batch, pending)
            pending, longest = [], int(batch.lengths_R[row])
        pending.append(row)
    if pending:
        yield _padded(batch, pending)


def _padded(batch: Batch, rows: list[int]) -> Microbatch:
    ends = batch.lengths_R.cumsum(0)
    spans = [slice(int(ends[r] - batch.lengths_R[r]), int(ends[r])) for r in rows]
    real = [torch.ones(span.stop - span.start) for span in spans]
    return Microbatch(
        token_ids_B_T=_pad([batch.token_ids_N[span] for span in spans]).long(),
        attention_mask_B_T=_pad(real).long(),
        loss_mask_B_T=_pad([batch.loss_mask_N[span] for span in spans]),
        behaviour_logprobs_B_T=_pad([batch.behaviour_logprobs_N[span] for span in spans]),
        versions_B_T=_pad([batch.versions_N[span] for span in spans]),
        advantages_B=batch.advantages_R[rows],
    )


def _pad(sequences: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)


def _joined(parts: Iterable[Sequence[float]]) -> list[float]:
    return [value for part in parts for value in part]
