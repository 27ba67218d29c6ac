"""control.select_tasks: draw the tasks of an iteration or evaluation."""

from temporalio import activity

from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.failures import UserError
from loopwright.contracts.iterations import SelectTasksRequest, SelectTasksResult
from loopwright.contracts.tasks import TaskRef
from loopwright.core import curriculum, seeds
from loopwright.environments.registry import build_environment


@activity.defn(name="control.select_tasks")
def select_tasks(request: SelectTasksRequest) -> SelectTasksResult:
    """Pick distinct tasks by seed; the same request picks the same ones.

    Raises:
        UserError: an environment has fewer tasks than its share.
    """
    weights = curriculum.task_weights(request.environments, request.split)
    found = [
        _draw(environment, count, num_spares, request)
        for environment, count, num_spares in zip(
            request.environments,
            curriculum.shares(weights, request.num_tasks),
            curriculum.shares(weights, request.num_spares),
            strict=True,
        )
    ]
    return SelectTasksResult(
        tasks=tuple(task for tasks, _ in found for task in tasks),
        spares=tuple(task for _, spares in found for task in spares),
    )


def _draw(
    environment: EnvironmentConfig, count: int, num_spares: int, request: SelectTasksRequest
) -> tuple[list[TaskRef], list[TaskRef]]:
    """Draw the tasks of one environment, and from the rest of them its spares."""
    listed = build_environment(environment).list_tasks(request.split)
    tasks = curriculum.drawable(listed, environment, request.split)
    if count > len(tasks):
        num_passed_by = len(listed) - len(tasks)
        others = f" ({num_passed_by} more are passed by)" if num_passed_by else ""
        raise UserError(
            f"environment {environment.id} has {len(tasks)} {request.split} tasks{others}, {count} "
            f"are asked for; ask for fewer or raise its number of tasks"
        )
    chosen = curriculum.choose(tasks, count, seeds.derive(request.seed, environment.id))
    rest = [task for task in tasks if task not in set(chosen)] if num_spares else []
    seed = seeds.derive(request.seed, environment.id, "spares")
    return chosen, curriculum.choose(rest, min(num_spares, len(rest)), seed)
