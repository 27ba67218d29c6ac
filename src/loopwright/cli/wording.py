"""Loops, iterations and evaluations in one line each."""

from collections.abc import Iterator

from loopwright.contracts.evaluations import Estimate, EvaluationResult
from loopwright.contracts.iterations import OPEN_STATUSES, IterationResult, LoopProgress


def percent(rate: float | None) -> str:
    """Write a share; a dash when there is none."""
    return "-" if rate is None else f"{100 * rate:.1f} %"


def describe_estimate(estimate: Estimate | None) -> str:
    """Write a share with its interval: ``61.2 % (57.9 to 64.5)``."""
    if estimate is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return percent(estimate.mean)
    return f"{percent(estimate.mean)} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"


def describe_course(progress: LoopProgress) -> Iterator[str]:
    """Describe what a loop has done so far: iterations and evaluations, in their order."""
    after = {found.iteration: found for found in progress.evaluations}
    if progress.base_evaluation:
        yield describe_evaluation("base policy", progress.base_evaluation)
    for row in progress.results:
        yield describe_iteration(row)
        if row.index in after:
            yield describe_evaluation(after_iteration(row.index), after[row.index])
    if progress.final_evaluation:
        yield describe_evaluation("final policy", progress.final_evaluation)


def after_iteration(index: int) -> str:
    """Name the policy that an evaluation between iterations was of."""
    return f"policy after iteration {index}"


def describe_evaluation(name: str, evaluation: EvaluationResult) -> str:
    """Say what an evaluation found."""
    failed = f", {evaluation.num_failed} failed" if evaluation.num_failed else ""
    return (
        f"{name} (version {evaluation.policy_version}): "
        f"first answer {describe_estimate(evaluation.first_pass_rate)}, "
        f"in the end {describe_estimate(evaluation.pass_rate)}; "
        f"{evaluation.num_tasks} held-out tasks x {evaluation.samples}{failed}, "
        f"{evaluation.seconds:.1f} s"
    )


def describe_iteration(row: IterationResult) -> str:
    """Say what an iteration came to."""
    phases = ", ".join(f"{name} {spent:.1f} s" for name, spent in row.seconds.items())
    reward = "-" if row.mean_reward is None else f"{row.mean_reward:.3f}"
    failed = f", {row.num_failed} failed" if row.num_failed else ""
    failed += f", {row.num_cancelled} of {row.num_episodes} cancelled" if row.num_cancelled else ""
    outcome = "" if row.outcome == "trained" else f" {row.outcome.replace('_', ' ')}"
    return (
        f"iteration {row.index}{outcome}: first answer {percent(row.first_pass_rate)}, "
        f"pass rate {percent(row.pass_rate)}, reward {reward}, "
        f"admitted {row.num_admitted}/{row.num_groups}{failed}, "
        f"{episodes_per_second(row)} episodes/s; {phases}"
    )


def describe_phase(progress: LoopProgress) -> str:
    """Say what a loop is doing, or how it ended."""
    lost = f", {progress.num_lost} lost" if progress.num_lost else ""
    return f"loop {progress.loop_id} {_doing(progress)} ({progress.num_episodes} episodes{lost})"


def _doing(progress: LoopProgress) -> str:
    if progress.status not in OPEN_STATUSES:
        return progress.status.replace("_", " ")
    asked = "" if progress.num_requested is None else f" of {progress.num_requested}"
    detail = f": {progress.detail}" if progress.detail else ""
    if progress.phase == "iterating":
        detail = f": iteration {progress.iteration}{asked}"
    soon = {"pausing": ", then paused", "stopping": ", then stopped"}.get(progress.status, "")
    return f"{progress.phase.replace('_', ' ')}{detail}{soon}"


def episodes_per_second(row: IterationResult) -> str:
    """Write the rate of an iteration's rollout."""
    spent = row.seconds.get("rollout", 0.0)
    return f"{row.num_episodes / spent:.1f}" if spent else "-"


def seconds_of(row: IterationResult, phase: str) -> str:
    """Write the seconds of one phase."""
    return f"{row.seconds[phase]:.1f}" if phase in row.seconds else "-"
