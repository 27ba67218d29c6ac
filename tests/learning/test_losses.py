import math
from dataclasses import replace

import pytest
import torch

from loopwright.learning.losses import TrainedTokens, clipped_policy_gradient, imitation, is_clipped


def tokens(ratios: list[float], advantages: list[float]) -> TrainedTokens:
    """Make tokens whose importance ratios are given."""
    behaviour = torch.full((len(ratios),), -1.0)
    return TrainedTokens(
        trainer_logprobs_N=(behaviour + torch.tensor([math.log(r) for r in ratios])),
        entropies_N=torch.zeros(len(ratios)),
        behaviour_logprobs_N=behaviour,
        advantages_N=torch.tensor(advantages),
        versions_N=torch.zeros(len(ratios)),
    )


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.0, 2.0, -2.0),
        (1.1, 1.0, -1.1),
        (1.5, 1.0, -1.28),  # clipped from above at 1 + 0.28
        (1.5, -1.0, 1.5),  # a harmful token that became likelier is not clipped
        (0.5, 1.0, -0.5),  # a useful token that became rarer is not clipped
        (0.5, -1.0, 0.8),  # clipped from below at 1 - 0.2
    ],
)
def test_clipped_policy_gradient_by_hand(ratio: float, advantage: float, expected: float) -> None:
    loss = clipped_policy_gradient(0.2, 0.28)(tokens([ratio], [advantage]))
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_tokens_beyond_the_clip_have_no_gradient() -> None:
    made = tokens([1.5, 0.5, 1.0], [1.0, -1.0, 1.0])
    logprobs = made.trainer_logprobs_N.clone().requires_grad_()
    again = replace(made, trainer_logprobs_N=logprobs)
    clipped_policy_gradient(0.2, 0.28)(again).sum().backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([0.0, 0.0, -1.0])
    assert is_clipped(made, 0.2, 0.28).tolist() == [True, True, False]


def test_absurd_ratio_stays_finite() -> None:
    made = TrainedTokens(
        trainer_logprobs_N=torch.tensor([-0.1]),
        entropies_N=torch.zeros(1),
        behaviour_logprobs_N=torch.tensor([-900.0]),
        advantages_N=torch.tensor([-1.0]),
        versions_N=torch.zeros(1),
    )
    assert math.isfinite(float(clipped_policy_gradient(0.2, 0.28)(made)))


def test_imitation_is_the_cross_entropy() -> None:
    logits = torch.randn(5, 9)
    targets = torch.randint(9, (5,))
    logprobs = logits.log_softmax(-1)[torch.arange(5), targets]
    made = TrainedTokens(logprobs, *(torch.zeros(5) for _ in range(4)))
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    assert torch.allclose(imitation(made), expected)
