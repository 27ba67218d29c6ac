"""One iteration: select tasks, run groups, admit, train, publish, report."""

from temporalio import workflow

from loopwright.contracts import activities, ids, queues
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.engines import LoadPolicyRequest
from loopwright.contracts.groups import GroupResult
from loopwright.contracts.iterations import (
    IterationInput,
    IterationOutcome,
    IterationResult,
    SelectTasksRequest,
    WriteReportRequest,
)
from loopwright.contracts.policies import CheckpointRef
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.training import BuildBatchRequest, TrainStepRequest, TrainStepResult
from loopwright.core import schedules, seeds, staleness, summaries

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import raise_if_cancelled, until_cancelled
    from loopwright.workflows.fan_out import FanOut
    from loopwright.workflows.options import call
    from loopwright.workflows.stopwatch import Stopwatch

COLLECTED = "collected"
"""Signal to the loop: the iteration of this number has its groups."""
LEARN_FROM = "learn_from"
"""Signal to an iteration: the version that the one before it has made."""


@workflow.defn(name=ids.ITERATION)
class IterationWorkflow:
    """Durable life of one iteration, ``loop/L/iteration/K``.

    Ends trained, or skipped_no_signal when no group was admitted: the policy stays as it was
    then. One that is cancelled before ends stopped, and tells what its episodes came to. Every
    activity may be repeated; the version an iteration makes is fixed by its number.
    """

    @workflow.init
    def __init__(self, iteration: IterationInput) -> None:
        self._iteration = iteration
        self._parent = None if iteration.has_predecessor else iteration.checkpoint
        self._prefix = ids.iteration_path(
            ids.loop_prefix(iteration.loop_id, iteration.loop_uid), iteration.index
        )
        self._watch = Stopwatch()
        self._groups: list[GroupResult] = []
        self._published: TrainStepResult | None = None

    @workflow.run
    async def run(self, iteration: IterationInput) -> IterationResult:
        """Collect experience, then learn from it."""
        outcome: IterationOutcome = "stopped"
        report = None
        with until_cancelled():
            tasks = await self._select_tasks()
            await self._run_groups(tasks)
            await self._wait_for_parent()
            outcome = await self._learn()
            report = await self._write_report()
        return self._result(outcome, report)

    async def _select_tasks(self) -> tuple[TaskRef, ...]:
        config = self._iteration.config
        selected = await call(
            activities.select_tasks,
            SelectTasksRequest(
                environments=config.environments,
                split="train",
                num_tasks=config.iteration.num_tasks,
                seed=seeds.derive(config.seed, "tasks", self._iteration.index),
            ),
            summary=f"select {config.iteration.num_tasks} tasks",
        )
        return selected.tasks

    async def _run_groups(self, tasks: tuple[TaskRef, ...]) -> None:
        self._show(f"running {len(tasks)} groups")
        with self._watch.timing("rollout"):
            self._groups = await FanOut(
                loop_id=self._iteration.loop_id,
                iteration=self._iteration.index,
                prefix=self._prefix,
                kind="training",
                config=self._iteration.config,
                checkpoint=self._iteration.checkpoint,
                group_size=self._iteration.config.iteration.group_size,
            ).run(tasks)
        raise_if_cancelled()

    async def _wait_for_parent(self) -> None:
        """Let the next iteration collect, and wait for the version that the one before makes."""
        if self._iteration.config.iteration.max_staleness == 0:
            return
        loop = workflow.get_external_workflow_handle(self._iteration.holder)
        await loop.signal(COLLECTED, self._iteration.index)
        with self._watch.timing("wait"):
            self._show("waiting for the version to learn from")
            await workflow.wait_condition(lambda: self._parent is not None)

    async def _learn(self) -> IterationOutcome:
        admitted = [group for group in self._groups if self._may_teach(group)]
        if not admitted:
            return "skipped_no_signal"
        trained = await self._train(admitted)
        await self._publish(trained)
        self._published = trained
        return "trained"

    def _may_teach(self, group: GroupResult) -> bool:
        return group.is_admitted and not self._is_too_old(group)

    def _is_too_old(self, group: GroupResult) -> bool:
        return staleness.is_too_old(
            group.oldest_version,
            trained_from=self._newest().policy.version,
            max_staleness=self._iteration.config.iteration.max_staleness,
        )

    def _newest(self) -> CheckpointRef:
        """Give the newest version known here."""
        return self._parent or self._iteration.checkpoint

    async def _train(self, groups: list[GroupResult]) -> TrainStepResult:
        """Gather the admitted groups and update the policy on them."""
        self._show(f"training on {len(groups)} groups")
        config, parent = self._iteration.config, self._newest()
        with self._watch.timing("batch"):
            built = await call(
                activities.build_batch,
                BuildBatchRequest(
                    prefix=self._prefix,
                    groups=tuple(group.manifest for group in groups if group.manifest),
                ),
                summary=f"batch of {len(groups)} groups",
                profile=config.profile,
            )
        version = parent.policy.version + 1
        with self._watch.timing("train"):
            return await call(
                activities.train_step,
                TrainStepRequest(
                    prefix=self._prefix,
                    parent=parent,
                    policy=parent.policy.model_copy(update={"version": version}),
                    batch=built.batch,
                    config=schedules.train_config(
                        config.train,
                        iteration=self._iteration.index,
                        num_iterations=config.num_iterations,
                    ),
                    temperature=config.sampling.temperature,
                    seed=seeds.derive(config.seed, "train", self._iteration.index),
                ),
                summary=f"version {version} from {built.num_trajectories} trajectories, "
                f"{built.num_trained_tokens} tokens",
                profile=config.profile,
            )

    async def _publish(self, trained: TrainStepResult) -> None:
        self._show(f"publishing version {trained.checkpoint.policy.version}")
        engine = self._iteration.config.engines[0].name
        with self._watch.timing("publish"):
            await call(
                activities.load_policy,
                LoadPolicyRequest(
                    engine=engine,
                    holder=self._iteration.holder,
                    checkpoint=trained.checkpoint,
                    in_flight=self._iteration.config.iteration.in_flight,
                ),
                summary=f"publish {trained.checkpoint.policy.label}",
                queue=queues.engine_queue(engine),
                profile=self._iteration.config.profile,
            )

    async def _write_report(self) -> ArtifactRef:
        return await call(
            activities.write_report,
            WriteReportRequest(
                prefix=self._prefix,
                name="iteration",
                groups=tuple(group.manifest for group in self._groups if group.manifest),
            ),
            summary="breakdown of the iteration",
        )

    def _result(self, outcome: IterationOutcome, report: ArtifactRef | None) -> IterationResult:
        groups, config = self._groups, self._iteration.config.iteration
        totals = summaries.total(groups, num_asked=len(groups) * config.group_size)
        published = self._published
        checkpoint = published.checkpoint if published else self._newest()
        too_old = [group for group in groups if group.is_admitted and self._is_too_old(group)]
        return IterationResult(
            index=self._iteration.index,
            outcome=outcome,
            policy_version=checkpoint.policy.version,
            checkpoint=checkpoint,
            num_episodes=totals.num_episodes,
            num_failed=totals.num_failed,
            num_cancelled=totals.num_cancelled,
            num_lost=totals.num_lost,
            num_groups=len(groups),
            num_admitted=totals.num_admitted - len(too_old),
            num_too_old=len(too_old),
            pass_rate=totals.pass_rate,
            first_pass_rate=totals.first_pass_rate,
            mean_reward=totals.mean_reward,
            num_completion_tokens=totals.num_completion_tokens,
            seconds=self._watch.seconds(),
            metrics=published.metrics if published else {},
            report=report,
        )

    @workflow.signal(name=LEARN_FROM)
    def learn_from(self, checkpoint: CheckpointRef) -> None:
        """Take the version that the iteration before has made."""
        self._parent = checkpoint

    def _show(self, phase: str) -> None:
        workflow.set_current_details(f"**Iteration {self._iteration.index}**: {phase}")
