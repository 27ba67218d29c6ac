import copy
from dataclasses import replace

import pytest
import torch

from loopwright.contracts.configs import TrainConfig
from loopwright.contracts.failures import TrainingDiverged
from loopwright.learning.batches import Row, microbatches
from tests.learning.models import batch_of, on_policy_rows, reference_logprobs, tiny_trainer

CONFIG = TrainConfig(num_minibatches=1, learning_rate=1e-3)


def weights(trainer: object) -> list[torch.Tensor]:
    return [p.detach().clone() for p in trainer.model.parameters()]  # type: ignore[attr-defined]


def test_padded_logprobs_are_those_of_each_sequence_alone() -> None:
    trainer = tiny_trainer()
    rows = on_policy_rows(trainer)
    (part,) = microbatches(batch_of(rows), torch.arange(len(rows)), max_tokens=10_000)
    tokens = trainer.trained_tokens(part, temperature=1.0)
    longest_first = sorted(rows, key=lambda row: len(row.sample.token_ids))
    expected = [
        x for row in longest_first for x in reference_logprobs(trainer, row.sample.token_ids)[2:]
    ]
    assert tokens.trainer_logprobs_N.tolist() == pytest.approx(expected, abs=2e-6)


def test_temperature_divides_the_logits() -> None:
    trainer = tiny_trainer()
    rows = on_policy_rows(trainer, num_groups=1, size=1)
    (part,) = microbatches(batch_of(rows), torch.arange(1), max_tokens=100)
    found = trainer.trained_tokens(part, temperature=0.5).trainer_logprobs_N
    ids = torch.tensor(rows[0].sample.token_ids)
    logits = trainer.model(ids.unsqueeze(0)).logits[0, 2:-1] / 0.5
    expected = -torch.nn.functional.cross_entropy(logits, ids[3:], reduction="none")
    assert torch.allclose(found, expected, atol=1e-6)


def test_update_is_one_adamw_step_on_the_reference_loss() -> None:
    trainer = tiny_trainer()
    rows = on_policy_rows(trainer)
    reference = copy.deepcopy(trainer.model)
    optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-3, weight_decay=0.0)
    total, count = torch.zeros(()), 0
    for row in rows:
        ids = torch.tensor(row.sample.token_ids)
        logprobs = reference(ids.unsqueeze(0)).logits[0, 2:-1].log_softmax(-1)
        chosen = logprobs[torch.arange(len(ids) - 3), ids[3:]]
        ratios = (chosen - torch.tensor(row.sample.behaviour_logprobs[3:])).exp()
        total = total - (ratios * row.advantage).sum()
        count += len(ids) - 3
    (total / count).backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(reference.parameters(), CONFIG.max_grad_norm)
    optimizer.step()

    trainer.reinforce(batch_of(rows), CONFIG, version=0, temperature=1.0, seed=0)

    for ours, theirs in zip(trainer.model.parameters(), reference.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-5)


def test_microbatches_do_not_change_the_update() -> None:
    updated = []
    for tokens_per_microbatch in (64, 100_000):
        trainer = tiny_trainer()
        config = CONFIG.model_copy(update={"tokens_per_microbatch": tokens_per_microbatch})
        trainer.reinforce(
            batch_of(on_policy_rows(trainer)), config, version=0, temperature=1.0, seed=0
        )
        updated.append(weights(trainer))
    for small, large in zip(*updated, strict=True):
        assert torch.allclose(small, large, atol=2e-5)


def test_same_seed_gives_the_same_weights() -> None:
    updated = []
    config = CONFIG.model_copy(update={"num_minibatches": 3})
    for _ in range(2):
        trainer = tiny_trainer()
        trainer.reinforce(
            batch_of(on_policy_rows(trainer)), config, version=0, temperature=1.0, seed=5
        )
        updated.append(weights(trainer))
    assert all(torch.equal(a, b) for a, b in zip(*updated, strict=True))


def test_update_makes_rewarded_samples_likelier() -> None:
    trainer = tiny_trainer()
    rows = on_policy_rows(trainer)
    before = [sum(reference_logprobs(trainer, row.sample.token_ids)[2:]) for row in rows]
    for seed in range(5):
        trainer.reinforce(
            batch_of(rows),
            CONFIG.model_copy(update={"max_mismatch": 1.0}),
            version=0,
            temperature=1.0,
            seed=seed,
        )
    after = [sum(reference_logprobs(trainer, row.sample.token_ids)[2:]) for row in rows]
    gain = sum((b - a) * row.advantage for a, b, row in zip(before, after, rows, strict=True))
    assert gain > 0


def test_mismatch_of_identical_weights_is_numerical_noise() -> None:
    trainer = tiny_trainer()
    batch = batch_of(on_policy_rows(trainer))
    metrics = trainer.reinforce(batch, CONFIG, version=0, temperature=1.0, seed=0)
    assert metrics["mismatch_mean"] < 1e-6
    assert metrics["clip_fraction"] == 0
    assert metrics["num_tokens"] == batch.num_trained_tokens


def test_batch_of_other_weights_is_refused_before_a_step() -> None:
    trainer = tiny_trainer()
    before = weights(trainer)
    rows = on_policy_rows(tiny_trainer(seed=1))
    with pytest.raises(TrainingDiverged, match=r"train\.max_mismatch"):
        trainer.reinforce(batch_of(rows), CONFIG, version=0, temperature=1.0, seed=0)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(trainer), strict=True))


def test_tokens_of_older_versions_are_not_held_against_the_engine() -> None:
    trainer = tiny_trainer()
    fresh = on_policy_rows(trainer)
    stale = [replace(row, group=row.group + 3) for row in on_policy_rows(tiny_trainer(seed=1))]
    batch = batch_of([*stale, *(with_version(row, 1) for row in fresh)])
    metrics = trainer.reinforce(batch, CONFIG, version=1, temperature=1.0, seed=0)
    assert metrics["mismatch_mean"] < 1e-6
    assert metrics["mismatch_mean_age_1"] > CONFIG.max_mismatch
    assert 0 < metrics["mean_age"] < 1


def test_batch_of_older_versions_alone_is_trained_on() -> None:
    trainer = tiny_trainer()
    rows = on_policy_rows(tiny_trainer(seed=1))
    metrics = trainer.reinforce(batch_of(rows), CONFIG, version=2, temperature=1.0, seed=0)
    assert "mismatch_mean" not in metrics
    assert metrics["mean_age"] == 2


def with_version(row: Row, version: int) -> Row:
    versions = tuple(version if known >= 0 else -1 for known in row.sample.versions)
    return replace(row, sample=row.sample.model_copy(update={"versions": versions}))


def test_gradient_that_is_not_finite_takes_no_step() -> None:
    trainer = tiny_trainer()
    before = weights(trainer)
    rows = [replace(row, advantage=float("inf")) for row in on_policy_rows(trainer)]
    with pytest.raises(TrainingDiverged, match="gradient norm"):
        trainer.reinforce(batch_of(rows), CONFIG, version=0, temperature=1.0, seed=0)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(trainer), strict=True))


def test_zero_advantages_leave_the_weights_alone() -> None:
    trainer = tiny_trainer()
    before = weights(trainer)
    rows = [Row(row.sample, 0.0, row.group) for row in on_policy_rows(trainer)]
    trainer.reinforce(batch_of(rows), CONFIG, version=0, temperature=1.0, seed=0)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(trainer), strict=True))
