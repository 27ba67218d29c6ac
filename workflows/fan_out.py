"""Run the groups of an iteration or an evaluation, each as a child workflow."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError

from loopwright.contracts import ids
from loopwright.contracts.configs import EnvironmentConfig, LoopConfig
from loopwright.contracts.episodes import EpisodeInput, EpisodeKind, Priority
from loopwright.contracts.groups import GroupInput, GroupResult
from loopwright.contracts.policies import CheckpointRef
from loopwright.contracts.tasks import TaskRef
from loopwright.core import seeds

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows import search_attributes
    from loopwright.workflows.causes import all_of, failure_of, is_cancellation
    from loopwright.workflows.group import GroupWorkflow
    from loopwright.workflows.options import PRIORITY_KEY, temporal_priority


@dataclass(frozen=True, slots=True)
class FanOut:
    """What the groups have in common."""

    loop_id: str
    iteration: int
    prefix: str
    kind: EpisodeKind
    config: LoopConfig
    checkpoint: CheckpointRef
    group_size: int

    async def run(self, tasks: Sequence[TaskRef]) -> list[GroupResult]:
        """Run a group for each task and give their results in the order of the tasks.

        A group that is lost to a failure of its own workflow counts no episode at all: the
        difference to what was asked for is what the caller reports as lost. One that the caller's
        cancellation kept from telling its episodes counts them all as cancelled.
        """
        found = await all_of(self._run_group(task) for task in tasks)
        return [group or self._cancelled(task) for task, group in zip(tasks, found, strict=True)]

    async def _run_group(self, task: TaskRef) -> GroupResult:
        parent = workflow.info().workflow_id
        try:
            return await workflow.execute_child_workflow(
                GroupWorkflow.run,
                self._input(task),
                id=ids.group_path(parent, task.environment, task.task_id),
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                search_attributes=search_attributes.at_start(
                    loop_id=self.loop_id,
                    iteration=self.iteration,
                    policy_version=self.checkpoint.policy.version,
                    task_id=task.task_id,
                ),
                static_summary=f"{self.group_size} episodes of {task.task_id}",
                priority=temporal_priority(self._priority()),
            )
        except ChildWorkflowError as error:
            if is_cancellation(error) and workflow.cancellation_reason() is not None:
                raise
            return _lost(task, failure_of(error).message)

    def _input(self, task: TaskRef) -> GroupInput:
        return GroupInput(
            loop_id=self.loop_id,
            iteration=self.iteration,
            size=self.group_size,
            advantage=self.config.iteration.advantage,
            episode=EpisodeInput(
                prefix=ids.group_path(self.prefix, task.environment, task.task_id),
                kind=self.kind,
                task=task,
                environment=self._environment(task),
                index=0,
                checkpoint=self.checkpoint,
                may_be_newer=self._may_be_newer(),
                engine=self.config.engines[0].name,
                sampling=self.config.sampling,
                budgets=self.config.episode,
                seed=seeds.derive(self.prefix, self.config.seed, task.environment, task.task_id),
                priority=self._priority(),
                profile=self.config.profile,
            ),
        )

    def _may_be_newer(self) -> bool:
        """Let a version that is published meanwhile sample what an evaluation must not mix."""
        return self.kind == "training" and self.config.iteration.max_staleness > 0

    def _cancelled(self, task: TaskRef) -> GroupResult:
        lost = _lost(task, "it was cancelled")
        size = self.group_size
        return lost.model_copy(update={"num_episodes": size, "num_cancelled": size})

    def _environment(self, task: TaskRef) -> EnvironmentConfig:
        return next(e for e in self.config.environments if e.id == task.environment)

    def _priority(self) -> Priority:
        return Priority(key=PRIORITY_KEY[self.kind], fairness_key=self.loop_id[:64])


def _lost(task: TaskRef, reason: str) -> GroupResult:
    return GroupResult(
        task=task,
        num_episodes=0,
        num_valid=0,
        num_passed=0,
        num_first_passed=0,
        mean_reward=None,
        num_completion_tokens=0,
        is_admitted=False,
        reason=f"the group failed: {reason}"[:500],
        manifest=None,
    )
