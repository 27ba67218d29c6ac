"""When a loop has done what it was asked for."""

from collections.abc import Iterable, Sequence

from loopwright.contracts.evaluations import EvaluationResult


def target_is_reached(first_pass_rates: Sequence[float | None], target: float | None) -> bool:
    """Tell whether the two newest iterations both reached the target; one could be luck."""
    newest = first_pass_rates[-2:]
    if target is None or len(newest) < 2:
        return False
    return all(rate is not None and rate >= target for rate in newest)


def evaluation_is_due(iteration: int, every: int) -> bool:
    """Tell whether an evaluation follows this iteration; ``every`` 0 is never."""
    return every > 0 and iteration > 0 and iteration % every == 0


def evaluation_after(
    iteration: int, evaluations: Iterable[EvaluationResult | None]
) -> EvaluationResult | None:
    """Find the evaluation of the policy that so many iterations made; another would repeat it."""
    found = (each for each in evaluations if each is not None and each.iteration == iteration)
    return next(found, None)
