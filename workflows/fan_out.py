"""Run the groups of an iteration or an evaluation, each as a child workflow."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError

from loopwright.contracts import ids
from loopwright.contracts.configs import EnvironmentConfig, LoopConfig
from loopwright.contracts.episodes import EpisodeInput, EpisodeKind, Priority
from loopwright.contracts.groups import GroupInput, GroupResult, ParkedRef
from loopwright.contracts.policies import CheckpointRef
from loopwright.contracts.tasks import TaskRef
from loopwright.core import priorities, seeds, staleness

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows import search_attributes
    from loopwright.workflows.causes import all_of, end_of, failure_of, is_cancellation
    from loopwright.workflows.group import GroupWorkflow
    from loopwright.workflows.options import temporal_priority


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
    seed: int
    """Of all episodes; the same in every loop that has the same configuration."""
    num_ahead: int = 0
    """Unfinished iterations before this one; each makes at most one version."""

    async def run(self, tasks: Sequence[TaskRef]) -> list[GroupResult]:
        """Run a group for each task and give their results in the order of the tasks.

        A group that is lost to a failure of its own workflow counts no episode at all: the
        difference to what was asked for is what the caller reports as lost. One that the caller's
        cancellation kept from telling its episodes counts them all as cancelled.
        """
        found = await all_of(self.begin(task).task for task in tasks)
        return [group or self.cancelled(task) for task, group in zip(tasks, found, strict=True)]

    def begin(self, task: TaskRef, parked: ParkedRef | None = None) -> "OpenGroup":
        """Begin a group, or go on with one that was parked."""
        path = ids.group_path(workflow.info().workflow_id, task.environment, task.task_id)
        group = OpenGroup(ref=task, workflow_id=parked.group_id if parked else path)
        group.task = asyncio.create_task(self._run_group(group, parked))
        return group

    async def _run_group(self, group: "OpenGroup", parked: ParkedRef | None) -> GroupResult:
        task = group.ref
        priority = self._priority(task, parked)
        try:
            group.handle = await workflow.start_child_workflow(
                GroupWorkflow.run,
                self._input(task, priority, parked),
                id=group.workflow_id,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                search_attributes=search_attributes.at_start(
                    loop_id=self.loop_id,
                    iteration=self.iteration,
                    policy_version=self.checkpoint.policy.version,
                    task_id=task.task_id,
                ),
                static_summary=f"{self.group_size} episodes of {task.task_id}",
                priority=temporal_priority(priority),
            )
            return await end_of(group.handle)
        except ChildWorkflowError as error:
            if is_cancellation(error) and workflow.cancellation_reason() is not None:
                raise
            if is_cancellation(error) and group.is_dropped:
                return self.cancelled(task)
            return _lost(task, failure_of(error).message)

    def _input(self, task: TaskRef, priority: Priority, parked: ParkedRef | None) -> GroupInput:
        return GroupInput(
            loop_id=self.loop_id,
            iteration=self.iteration,
            size=self.group_size,
            advantage=self.config.iteration.advantage,
            max_replacements=self.config.iteration.max_replacements,
            parked=parked.artifact if parked else None,
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
                seed=seeds.derive(self.seed, task.environment, task.task_id),
                priority=priority,
                profile=self.config.profile,
            ),
        )

    def cancelled(self, task: TaskRef) -> GroupResult:
        """Give the result of a group whose cancellation kept it from telling its own."""
        lost = _lost(task, "it was cancelled")
        size = self.group_size
        return lost.model_copy(
            update={"num_episodes": size, "num_cancelled": size, "dropped_by": ""}
        )

    def _may_be_newer(self) -> bool:
        """Tell whether versions published meanwhile may sample: not in an evaluation of one."""
        return self.kind == "training" and self.config.iteration.max_staleness > 0

    def _environment(self, task: TaskRef) -> EnvironmentConfig:
        return next(e for e in self.config.environments if e.id == task.environment)

    def _priority(self, task: TaskRef, parked: ParkedRef | None) -> Priority:
        work = priorities.Work(
            kind=self.kind,
            environment=task.environment,
            phase="ahead" if self.num_ahead else "waited_for",
            versions_left=staleness.versions_left(
                parked.oldest_version if parked else None,
                trained_from=self.checkpoint.policy.version + self.num_ahead,
                max_staleness=self.config.iteration.max_staleness,
            ),
        )
        return priorities.of(work, loop_id=self.loop_id, config=self.config)


@dataclass(slots=True)
class OpenGroup:
    """A group under way."""

    ref: TaskRef
    workflow_id: str
    handle: workflow.ChildWorkflowHandle[GroupWorkflow, GroupResult] | None = None
    """None until its workflow has started."""
    task: "asyncio.Task[GroupResult]" = field(init=False)
    is_dropped: bool = False
    """Whether it was cancelled because it is not needed any more."""


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
        dropped_by="infra",
        manifest=None,
    )
