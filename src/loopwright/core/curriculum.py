"""Which tasks the next iteration takes, from a seed."""

import math
import random
from collections.abc import Sequence

from loopwright.contracts.tasks import TaskRef


def shares(weights: Sequence[float], total: int) -> list[int]:
    """Divide ``total`` by weight with the largest remainders; the shares add up to ``total``."""
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
