"""What changes from iteration to iteration of a loop."""

from loopwright.contracts.configs import TrainConfig


def train_config(config: TrainConfig, *, iteration: int, num_iterations: int | None) -> TrainConfig:
    """Give the update of one iteration its learning rate.

    The rate falls linearly from ``learning_rate`` in iteration 1 to ``final_learning_rate_share``
    of it in the last one, and stays there if the loop is asked for more. A loop without a number
    of iterations keeps it as it is.
    """
    if num_iterations is None or num_iterations < 2:
        return config
    done = min(1.0, (iteration - 1) / (num_iterations - 1))
    share = 1 - (1 - config.final_learning_rate_share) * done
    return config.model_copy(update={"learning_rate": config.learning_rate * share})
