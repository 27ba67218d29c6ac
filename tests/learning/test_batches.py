import pytest
import torch

from loopwright.contracts.failures import ContractError
from loopwright.learning.batches import Batch, Row, decode, encode, microbatches, minibatches
from tests.learning.models import sample


def rows(lengths: list[int], group_size: int = 2) -> list[Row]:
    return [
        Row(sample(range(1, n + 1), prompt=2), advantage=float(i), group=i // group_size)
        for i, n in enumerate(lengths)
    ]


def test_batch_is_the_same_after_a_round_trip() -> None:
    batch = Batch.of(rows([5, 3, 7]))
    again = decode(encode(batch))
    assert all(torch.equal(getattr(batch, name), getattr(again, name)) for name in batch.__slots__)
    assert encode(again) == encode(batch)


@pytest.mark.parametrize("damage", [b"", b"x" * 40, encode(Batch.of(rows([4])))[:-3]])
def test_damaged_batch_is_refused(damage: bytes) -> None:
    with pytest.raises(ContractError, match="not a training batch"):
        decode(damage)


def test_minibatches_hold_whole_groups_and_every_row_once() -> None:
    batch = Batch.of(rows([4] * 10))
    parts = minibatches(batch, 2, seed=3)
    groups = [set(batch.groups_R[part].tolist()) for part in parts]
    assert sorted(torch.cat(parts).tolist()) == list(range(10))
    assert not groups[0] & groups[1]


def test_fewer_groups_than_minibatches_make_fewer_steps() -> None:
    assert len(minibatches(Batch.of(rows([4, 4])), 5, seed=0)) == 1


def test_microbatches_stay_within_their_tokens_and_keep_every_row() -> None:
    lengths = [3, 30, 4, 5, 29, 3, 8]
    parts = list(microbatches(Batch.of(rows(lengths)), torch.arange(7), max_tokens=60))
    assert all(part.token_ids_B_T.numel() <= 60 for part in parts)
    assert sorted(n for p in parts for n in p.attention_mask_B_T.sum(1).tolist()) == sorted(lengths)


def test_sample_longer_than_a_microbatch_is_one_of_its_own() -> None:
    parts = list(microbatches(Batch.of(rows([50, 4])), torch.arange(2), max_tokens=10))
    assert [part.token_ids_B_T.shape for part in parts] == [(1, 4), (1, 50)]


def test_padding_is_neither_attended_nor_trained() -> None:
    (part,) = microbatches(Batch.of(rows([3, 6])), torch.arange(2), max_tokens=100)
    padding = part.attention_mask_B_T == 0
    assert padding.sum() == 3
    assert not part.loss_mask_B_T[padding].any()


def test_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        Batch.of([])
