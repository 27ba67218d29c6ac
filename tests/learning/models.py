"""A model small enough to train in a test, and batches for it."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from loopwright.learning.batches import Batch, Row
from loopwright.learning.trainer import Trainer
from loopwright.trajectories.trajectory import Sample

VOCABULARY_SIZE = 40


def tiny_trainer(seed: int = 0) -> Trainer:
    """Make a trainer of a two-layer Llama."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        initializer_range=0.3,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config)  # type: ignore[no-untyped-call]
    return Trainer(model)


def sample(token_ids: Sequence[int], *, prompt: int, logprobs: Sequence[float] = ()) -> Sample:
    """Make a sample whose first ``prompt`` tokens were not sampled."""
    count = len(token_ids)
    behaviour = list(logprobs) or [-1.0] * (count - prompt)
    return Sample(
        token_ids=tuple(token_ids),
        loss_mask=(False,) * prompt + (True,) * (count - prompt),
        behaviour_logprobs=(*([0.0] * prompt), *behaviour),
        versions=(-1,) * prompt + (0,) * (count - prompt),
        turns=(-1,) * prompt + (0,) * (count - prompt),
    )


def on_policy_rows(trainer: Trainer, *, num_groups: int = 3, size: int = 4) -> list[Row]:
    """Draw random samples of different lengths, with the trainer's own logprobs."""
    generator = torch.Generator().manual_seed(7)
    rows = []
    for group in range(num_groups):
        for index in range(size):
            length = 6 + 3 * index + group
            ids = torch.randint(VOCABULARY_SIZE, (length,), generator=generator).tolist()
            behaviour = reference_logprobs(trainer, ids)[2:]
            row = sample(ids, prompt=3, logprobs=behaviour)
            rows.append(Row(row, advantage=(-1.0) ** index * (1 + index / 3), group=group))
    return rows


@torch.no_grad()
def reference_logprobs(trainer: Trainer, token_ids: Sequence[int]) -> list[float]:
    """Give log p of tokens 1 to T - 1, one sequence by itself, without padding."""
    logits = trainer.model(torch.tensor([list(token_ids)])).logits[0, :-1].double()
    logprobs = torch.log_softmax(logits, -1)
    return [float(logprobs[t, token_ids[t + 1]]) for t in range(len(token_ids) - 1)]


def batch_of(rows: Sequence[Row]) -> Batch:
    """Join rows."""
    return Batch.of(list(rows))


def save_tiny_model(directory: Path, seed: int = 0) -> Path:
    """Save a model directory with the files an import needs."""
    tiny_trainer(seed).model.save_pretrained(directory)
    (directory / "tokenizer.json").write_text('{"version": "1.0"}')
    (directory / "tokenizer_config.json").write_text("{}")
    (directory / "chat_template.jinja").write_text("{{ messages }}")
    return directory
