"""control.select_tasks: draw the tasks of an iteration or evaluation."""

from temporalio import activity

from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.failures import UserError
from loopwright.contracts.iterations import SelectTasksRequest, SelectTasksResult
from loopwright.contracts.tasks import Split, TaskRef
from loopwright.core import curriculum, seeds
from loopwright.environments.registry import build_environment


@activity.defn(name="control.select_tasks")
def select_tasks(request: SelectTasksRequest) -> SelectTasksResult:
    """Pick distinct tasks by seed; the same request picks the same ones.

    Raises:
        UserError: an environment has fewer tasks than its share.
    """
    counts = curriculum.shares([e.weight for e in request.environments], request.num_tasks)
    tasks = [
        task
        for environment, count in zip(request.environments, counts, strict=True)
        for task in _draw(environment, count, request.split, request.seed)
    ]
    return SelectTasksResult(tasks=tuple(tasks))


def _draw(environment: EnvironmentConfig, count: int, split: Split, seed: int) -> list[TaskRef]:
    tasks = build_environment(environment).list_tasks(split)
    if count > len(tasks):
        raise UserError(
            f"environment {environment.id} has {len(tasks)} {split} tasks, {count} are asked for; "
            f"ask for fewer or raise its number of tasks"
        )
    return curriculum.choose(tasks, count, seeds.derive(seed, environment.id))
