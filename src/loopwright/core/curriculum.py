"""Which tasks the next iteration takes, from a seed."""

import math
import random
from collections.abc import Sequence

from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.tasks import Split, TaskRef


def task_weights(environments: Sequence[EnvironmentConfig], split: Split) -> list[float]:
    """Give each environment's share of the tasks; what is passed by trains nothing."""
    return [0.0 if split == "train" and each.is_passed_by else each.weight for each in environments]


def drawable(
    tasks: Sequence[TaskRef], environment: EnvironmentConfig, split: Split
) -> list[TaskRef]:
    """Leave out the tasks of an environment that are passed by in training."""
    passed_by = environment.difficulties_passed_by if split == "train" else ()
    return [task for task in tasks if task.difficulty not in passed_by]


def shares(weights: Sequence[float], total: int) -> list[int]:
    """Divide ``total`` by weight with the largest remainders; the shares add up to ``total``.

    Where nothing has a weight, nothing has a share.
    """
    if not any(weights):
        return [0] * len(weights)
    _, exponent = math.frexp(max(weights))
    small = [math.ldexp(weight, -exponent) for weight in weights]  # exact, and the sum is finite
    exact = [total * weight / sum(small) for weight in small]
    result = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (result[i] - exact[i], i))
    for i in by_remainder[: total - sum(result)]:
        result[i] += 1
    return result


def choose(tasks: Sequence[TaskRef], count: int, seed: int) -> list[TaskRef]:
    """Draw ``count`` distinct tasks, uniformly; the same seed draws the same tasks.

    Raises:
        ValueError: there are fewer tasks than asked for.
    """
    if count > len(tasks):
        raise ValueError(f"{count} tasks asked for, {len(tasks)} there are")
    return random.Random(seed).sample(list(tasks), count)
