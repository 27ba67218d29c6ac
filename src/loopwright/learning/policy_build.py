"""The base policy: a small Llama that imitates demonstrations with errors in them.

It is made by the trainer that does reinforcement learning, from a seed, in minutes on two cores.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from loopwright.contracts.configs import TrainConfig
from loopwright.contracts.turns import Message
from loopwright.environments.program_steps.demonstrations import demonstrations
from loopwright.learning.batches import Batch, Row
from loopwright.learning.losses import imitation
from loopwright.learning.trainer import Trainer
from loopwright.trajectories.rendering import Renderer
from loopwright.trajectories.trajectory import Sample

OnProgress = Callable[[int, int, float], None]
"""Told steps done, steps in all, and the loss of the newest."""

ERROR_RATE = 0.2
"""Share of lines that a demonstration gets wrong: what post-training is to mend."""
NUM_STEPS = 600
BATCH_SIZE = 32
PEAK_LEARNING_RATE = 1.5e-3
_WARM_UP_STEPS = 20
_VOCABULARY_SIZE = 384
_MAX_POSITIONS = 512
_END, _START, _PAD = "<|im_end|>", "<|im_start|>", "<|pad|>"
_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class PolicyBuildSummary:
    """What was built."""

    num_parameters: int
    num_steps: int
    loss: float
    """Cross entropy of the last step, in nats a token."""


def build_policy(
    directory: Path,
    *,
    seed: int = 0,
    num_steps: int = NUM_STEPS,
    error_rate: float = ERROR_RATE,
    on_progress: OnProgress = lambda done, total, loss: None,
) -> PolicyBuildSummary:
    """Build a base policy in the Hugging Face layout.

    Args:
        directory: an empty one, to be filled.
        seed: the same seed gives the same policy.
        num_steps: optimiser steps.
        error_rate: share of demonstrated lines that are wrong, in [0, 1].
        on_progress: told after each step.
    """
    conversations = list(demonstrations(seed, num_steps * BATCH_SIZE, error_rate=error_rate))
    disable_progress_bar()  # type: ignore[no-untyped-call]
    _tokenizer(conversations).save_pretrained(directory)
    renderer = Renderer(directory)
    torch.manual_seed(seed)
    trainer = Trainer(_model(renderer))
    loss = math.nan
    for step in range(num_steps):
        part = conversations[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
        loss = trainer.imitate(_batch(renderer, part), _config(step, num_steps), imitation)
        on_progress(step + 1, num_steps, loss)
    _save(trainer, directory)
    return PolicyBuildSummary(
        num_parameters=sum(p.numel() for p in trainer.model.parameters()),
        num_steps=num_steps,
        loss=loss,
    )


def _tokenizer(conversations: Sequence[tuple[Message, ...]]) -> PreTrainedTokenizerFast:
    """Train byte-level pairs; digits stand alone and punctuation is split off."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        (f"{m.role}\n{m.content}" for messages in conversations for m in messages),
        trainers.BpeTrainer(
            vocab_size=_VOCABULARY_SIZE,
            special_tokens=[_PAD, _START, _END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token=_END,
        pad_token=_PAD,
        additional_special_tokens=[_START],
        chat_template=_CHAT_TEMPLATE,
        model_max_length=_MAX_POSITIONS,
        clean_up_tokenization_spaces=False,
    )


def _model(renderer: Renderer) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=_VOCABULARY_SIZE,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=_MAX_POSITIONS,
        initializer_range=0.06,
        tie_word_embeddings=False,
        eos_token_id=renderer.stop_token_ids[0],
        bos_token_id=None,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config)  # type: ignore[no-untyped-call]


def _batch(renderer: Renderer, conversations: Sequence[tuple[Message, ...]]) -> Batch:
    return Batch.of([Row(_sample(renderer, m), 0.0, i) for i, m in enumerate(conversations)])


def _sample(renderer: Renderer, messages: tuple[Message, ...]) -> Sample:
    rendered = renderer.conversation(messages)
    count = len(rendered.token_ids)
    return Sample(
        token_ids=rendered.token_ids,
        loss_mask=rendered.loss_mask,
        behaviour_logprobs=(0.0,) * count,
        versions=(-1,) * count,
        turns=(-1,) * count,
    )


def _config(step: int, num_steps: int) -> TrainConfig:
    """Warm the learning rate up, then let it fall along a cosine to a tenth."""
    warm = min(1.0, (step + 1) / _WARM_UP_STEPS)
    cosine = 0.55 + 0.45 * math.cos(math.pi * step / num_steps)
    return TrainConfig(learning_rate=PEAK_LEARNING_RATE * warm * cosine)


def _save(trainer: Trainer, directory: Path) -> None:
    trainer.model.save_pretrained(directory)
    for path in directory.glob("*.json"):
        # One line less of churn between library versions: sorted, and ended by a newline.
        path.write_text(json.dumps(json.loads(path.read_text()), indent=1, sort_keys=True) + "\n")
    for path in directory.iterdir():
        path.chmod(0o644)
