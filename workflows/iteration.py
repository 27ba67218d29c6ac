"""One iteration: select tasks, run groups, admit, train, publish, report."""

from temporalio import workflow

from loopwright.contracts import activities, ids, queues
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.configs import IterationConfig
from loopwright.contracts.engines import LoadPolicyRequest
from loopwright.contracts.groups import GroupResult, ParkedRef
from loopwright.contracts.iterations import (
    Collected,
    IterationInput,
    IterationOutcome,
    IterationResult,
    SelectTasksRequest,
    SelectTasksResult,
    WriteReportRequest,
)
from loopwright.contracts.policies import CheckpointRef
from loopwright.contracts.progress import IterationProgress
from loopwright.contracts.training import BuildBatchRequest, TrainStepRequest, TrainStepResult
from loopwright.core import details, run_limits, schedules, seeds, staleness, states, summaries

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import raise_if_cancelled, until_cancelled
    from loopwright.workflows.collection import Collection
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
        self._phase = "selecting tasks"
        self._groups: list[GroupResult] = []
        self._collection = Collection(
            FanOut(
                loop_id=iteration.loop_id,
                iteration=iteration.index,
                prefix=self._prefix,
                kind="training",
                config=iteration.config,
                checkpoint=iteration.checkpoint,
                group_size=iteration.config.iteration.group_size,
                seed=seeds.derive(iteration.config.seed, "episodes", iteration.index),
                num_ahead=iteration.num_ahead,
            ),
            config=iteration.config.iteration,
            drops=iteration.drops,
            on_change=self._show,
        )
        self._is_handed_on = False
        """Whether the loop has been told of the parked groups."""
        self._published: TrainStepResult | None = None

    @workflow.run
    async def run(self, iteration: IterationInput) -> IterationResult:
        """Collect experience, then learn from it."""
        outcome: IterationOutcome = "stopped"
        report = None
        with until_cancelled():
            selected = await self._select_tasks()
            await self._run_groups(selected)
            await self._wait_for_parent()
            outcome = await self._learn()
            report = await self._write_report()
        return self._result(outcome, report)

    async def _select_tasks(self) -> SelectTasksResult:
        """Draw what is to begin besides the groups that are carried, and spares for lost ones."""
        self._show()
        config = self._iteration.config
        num_tasks = max(0, run_limits.num_begun(config.iteration) - len(self._carried()))
        return await call(
            activities.select_tasks,
            SelectTasksRequest(
                environments=config.environments,
                split="train",
                num_tasks=num_tasks,
                num_spares=run_limits.num_spares(config.iteration),
                seed=seeds.derive(config.seed, "tasks", self._iteration.index),
            ),
            summary=f"select {num_tasks} tasks",
        )

    def _carried(self) -> list[ParkedRef]:
        """Give the groups to go on with, but for those that would be too old in the end."""
        least = self._iteration.checkpoint.policy.version + self._iteration.has_predecessor
        return [
            ref
            for ref in self._iteration.carried
            if not staleness.is_too_old(
                ref.oldest_version,
                trained_from=least,
                max_staleness=self._iteration.config.iteration.max_staleness,
            )
        ]

    async def _run_groups(self, selected: SelectTasksResult) -> None:
        with self._watch.timing("rollout"):
            self._show("collecting")
            self._groups = await self._collection.run(
                selected.tasks, selected.spares, self._carried()
            )
        raise_if_cancelled()

    async def _wait_for_parent(self) -> None:
        """Let the next iteration collect, and wait for the version that the one before makes."""
        if self._iteration.config.iteration.max_staleness == 0:
            return
        loop = workflow.get_external_workflow_handle(self._iteration.holder)
        collected = Collected(index=self._iteration.index, parked=tuple(self._parked()))
        await loop.signal(COLLECTED, collected)
        self._is_handed_on = True
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

    def _parked(self) -> list[ParkedRef]:
        """Give the groups that a later iteration may go on with."""
        return [group.parked for group in self._groups if group.parked is not None]

    def _num_given_up(self) -> int:
        """Count the episodes of parked groups that nobody goes on with."""
        resumed = {ref.group_id for ref in self._collection.resumed}
        given_up = [ref for ref in self._iteration.carried if ref.group_id not in resumed]
        if not self._is_handed_on:
            given_up += self._parked()
        return sum(ref.num_episodes for ref in given_up)

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
        self._show("writing the report")
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
        groups = [group for group in self._groups if group.parked is None]
        size, drops = self._iteration.config.iteration.group_size, self._collection.drops
        totals = summaries.total(groups, num_asked=summaries.num_asked(groups, size=size))
        published = self._published
        checkpoint = published.checkpoint if published else self._newest()
        too_old = [group for group in groups if group.is_admitted and self._is_too_old(group)]
        return IterationResult(
            index=self._iteration.index,
            outcome=outcome,
            policy_version=checkpoint.policy.version,
            checkpoint=checkpoint,
            num_episodes=totals.num_episodes + self._num_given_up(),
            num_failed=totals.num_failed,
            num_cancelled=totals.num_cancelled + self._num_given_up(),
            num_lost=totals.num_lost,
            num_groups=len(groups),
            num_carried=len(self._groups) - len(groups),
            num_skipped_tasks=drops.num_skipped_tasks - self._iteration.drops.num_skipped_tasks,
            num_infra_drops_in_a_row=drops.num_infra_drops_in_a_row,
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

    @workflow.signal
    def configure(self, config: IterationConfig) -> None:
        """Follow what the loop was told: how many groups are open at once, and the limits.

        How many it needs, and what it may leave to a later iteration, stay as it began.
        """
        self._collection.config = run_limits.followed(self._iteration.config.iteration, config)

    @workflow.query
    def progress(self) -> IterationProgress:
        """Give the live state."""
        now, seconds = self._collection, self._watch.spent("rollout")
        counts = states.count_episodes(now.ended)
        return IterationProgress(
            index=self._iteration.index,
            phase=self._phase,
            groups=states.count_groups(
                now.ended, num_waiting=now.num_waiting, num_open=now.num_open
            ),
            episodes=counts,
            episodes_per_minute=60 * sum(counts.values()) / seconds if seconds else None,
            silent_seconds=now.config.watchdog_seconds if now.is_silent else None,
            troubles=tuple(now.troubles),
        )

    def _show(self, phase: str | None = None) -> None:
        """Tell in the Web UI what the iteration is at."""
        self._phase = phase or self._phase
        namespace = workflow.info().namespace
        workflow.set_current_details(details.of_iteration(self.progress(), namespace=namespace))
