import pytest

from loopwright.contracts.configs import TrainConfig
from loopwright.core.schedules import train_config

CONFIG = TrainConfig(learning_rate=1.0, final_learning_rate_share=0.2)


@pytest.mark.parametrize(
    ("iteration", "num_iterations", "rate"),
    [(1, 5, 1.0), (3, 5, 0.6), (5, 5, 0.2), (9, 5, 0.2), (7, None, 1.0), (1, 1, 1.0)],
)
def test_learning_rate_falls_to_its_share_and_no_further(
    iteration: int, num_iterations: int | None, rate: float
) -> None:
    found = train_config(CONFIG, iteration=iteration, num_iterations=num_iterations)
    assert found.learning_rate == pytest.approx(rate)
    assert found.model_copy(update={"learning_rate": 1.0}) == CONFIG


def test_share_of_one_keeps_the_rate() -> None:
    config = TrainConfig(learning_rate=1e-3, final_learning_rate_share=1)
    assert train_config(config, iteration=4, num_iterations=5) == config
