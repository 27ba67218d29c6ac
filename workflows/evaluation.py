"""One evaluation: a fixed policy version over held-out tasks, never trained on."""

from temporalio import workflow

from loopwright.contracts import activities, ids
from loopwright.contracts.evaluations import EvaluationInput, EvaluationResult
from loopwright.contracts.groups import GroupResult
from loopwright.contracts.iterations import SelectTasksRequest, WriteReportRequest
from loopwright.contracts.tasks import TaskRef
from loopwright.core import seeds, summaries

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows.fan_out import FanOut
    from loopwright.workflows.options import call
    from loopwright.workflows.stopwatch import Stopwatch


@workflow.defn(name=ids.EVALUATION)
class EvaluationWorkflow:
    """Durable life of one evaluation, ``loop/L/evaluation/NAME``.

    The tasks depend on the loop's seed alone, so two evaluations of a loop are paired. Whoever
    starts it holds the engine's lease and has published the version.
    """

    @workflow.run
    async def run(self, evaluation: EvaluationInput) -> EvaluationResult:
        """Evaluate the version on every task."""
        self._evaluation = evaluation
        self._watch = Stopwatch()
        tasks = await self._select_tasks()
        groups = await self._run_groups(tasks)
        return await self._report(groups)

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

    async def _run_groups(self, tasks: tuple[TaskRef, ...]) -> list[GroupResult]:
        return await FanOut(
            loop_id=self._evaluation.loop_id,
            iteration=self._evaluation.iteration,
            prefix=self._evaluation.prefix,
            kind="evaluation",
            config=self._evaluation.config,
            checkpoint=self._evaluation.checkpoint,
            group_size=self._evaluation.samples,
        ).run(tasks)

    async def _report(self, groups: list[GroupResult]) -> EvaluationResult:
        report = await call(
            activities.write_report,
            WriteReportRequest(
                prefix=self._evaluation.prefix,
                name="evaluation",
                groups=tuple(group.manifest for group in groups if group.manifest),
            ),
            summary="breakdown of the evaluation",
        )
        totals = summaries.total(groups, num_asked=len(groups) * self._evaluation.samples)
        return EvaluationResult(
            policy_version=self._evaluation.checkpoint.policy.version,
            num_tasks=len(groups),
            samples=self._evaluation.samples,
            num_episodes=totals.num_episodes,
            num_failed=totals.num_failed,
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
