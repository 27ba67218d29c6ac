"""One evaluation: a fixed policy version over held-out tasks, never trained on."""

from temporalio import workflow

from loopwright.contracts import activities, ids
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.evaluations import EvaluationInput, EvaluationResult
from loopwright.contracts.groups import GroupResult
from loopwright.contracts.iterations import SelectTasksRequest, WriteReportRequest
from loopwright.contracts.tasks import TaskRef
from loopwright.core import seeds, summaries

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.causes import raise_if_cancelled, until_cancelled
    from loopwright.workflows.fan_out import FanOut
    from loopwright.workflows.options import call
    from loopwright.workflows.stopwatch import Stopwatch


@workflow.defn(name=ids.EVALUATION)
class EvaluationWorkflow:
    """Durable life of one evaluation, ``loop/L/evaluation/NAME``.

    The tasks depend on the loop's seed alone, so two evaluations of a loop are paired. Whoever
    starts it holds the engine's lease and has published the version. One that is cancelled ends
    stopped, and tells what its episodes came to.
    """

    @workflow.run
    async def run(self, evaluation: EvaluationInput) -> EvaluationResult:
        """Evaluate the version on every task."""
        self._evaluation = evaluation
        self._watch = Stopwatch()
        self._groups: list[GroupResult] = []
        report = None
        with until_cancelled():
            tasks = await self._select_tasks()
            await self._run_groups(tasks)
            report = await self._write_report()
        return self._result(report)

    async def _select_tasks(self) -> tuple[TaskRef, ...]:
        config = self._evaluation.config
        selected = await call(
            activities.select_tasks,
            SelectTasksRequest(
                environments=config.environments,
                split="heldout",
                num_tasks=self._evaluation.num_tasks,
                seed=seeds.derive(config.seed, "evaluation"),
            ),
            summary=f"select {self._evaluation.num_tasks} held-out tasks",
        )
        return selected.tasks

    async def _run_groups(self, tasks: tuple[TaskRef, ...]) -> None:
        self._groups = await FanOut(
            loop_id=self._evaluation.loop_id,
            iteration=self._evaluation.iteration,
            prefix=self._evaluation.prefix,
            kind="evaluation",
            config=self._evaluation.config,
            checkpoint=self._evaluation.checkpoint,
            group_size=self._evaluation.samples,
            seed=seeds.derive(self._evaluation.config.seed, "evaluation", self._evaluation.name),
        ).run(tasks)
        raise_if_cancelled()

    async def _write_report(self) -> ArtifactRef:
        return await call(
            activities.write_report,
            WriteReportRequest(
                prefix=self._evaluation.prefix,
                name="evaluation",
                groups=tuple(group.manifest for group in self._groups if group.manifest),
            ),
            summary="breakdown of the evaluation",
        )

    def _result(self, report: ArtifactRef | None) -> EvaluationResult:
        groups = self._groups
        totals = summaries.total(groups, num_asked=len(groups) * self._evaluation.samples)
        return EvaluationResult(
            outcome="completed" if report else "stopped",
            iteration=self._evaluation.iteration,
            policy_version=self._evaluation.checkpoint.policy.version,
            num_tasks=len(groups),
            samples=self._evaluation.samples,
            num_episodes=totals.num_episodes,
            num_failed=totals.num_failed,
            num_cancelled=totals.num_cancelled,
            num_lost=totals.num_lost,
            first_pass_rate=summaries.estimate_share(
                [(group.num_first_passed, group.num_valid) for group in groups]
            ),
            pass_rate=summaries.estimate_share(
                [(group.num_passed, group.num_valid) for group in groups]
            ),
            mean_reward=summaries.estimate_mean(
                [(group.mean_reward, group.num_valid) for group in groups]
            ),
            seconds=self._watch.seconds()["total"],
            report=report,
        )
