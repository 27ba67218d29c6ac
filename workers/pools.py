"""Which pool polls which queue, with which workflows and how much at once."""

from collections.abc import Mapping
from dataclasses import dataclass

from loopwright.contracts.queues import Pool


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """One kind of worker process; targets are ``module:name``, resolved where they run."""

    activities: tuple[str, ...]
    workflows: tuple[str, ...] = ()


_ACTIVITIES = "loopwright.activities"
_WORKFLOWS = "loopwright.workflows"

POOLS: Mapping[Pool, PoolSpec] = {
    Pool.CONTROL: PoolSpec(
        activities=(
            f"{_ACTIVITIES}.control.select_tasks:select_tasks",
            f"{_ACTIVITIES}.control.ask_loop:AskLoop.ask_loop",
            f"{_ACTIVITIES}.control.await_loop:AwaitLoop.await_loop",
            f"{_ACTIVITIES}.control.score_group:ScoreGroup.score_group",
            f"{_ACTIVITIES}.control.park_group:ParkGroup.park_group",
            f"{_ACTIVITIES}.control.load_parked:LoadParked.load_parked",
            f"{_ACTIVITIES}.control.write_report:WriteReport.write_report",
        ),
        workflows=(
            f"{_WORKFLOWS}.loop:LoopWorkflow",
            f"{_WORKFLOWS}.iteration:IterationWorkflow",
            f"{_WORKFLOWS}.evaluation:EvaluationWorkflow",
            f"{_WORKFLOWS}.group:GroupWorkflow",
            f"{_WORKFLOWS}.scheduled_work:ScheduledWorkWorkflow",
        ),
    ),
    Pool.EPISODE: PoolSpec(
        activities=(
            f"{_ACTIVITIES}.episode.take_turns:TakeTurns.take_turns",
            f"{_ACTIVITIES}.episode.grade_episode:GradeEpisode.grade_episode",
        ),
        workflows=(f"{_WORKFLOWS}.episode:EpisodeWorkflow",),
    ),
    Pool.ENGINE: PoolSpec(
        activities=(
            f"{_ACTIVITIES}.engine.acquire_lease:AcquireLease.acquire_lease",
            f"{_ACTIVITIES}.engine.release_lease:ReleaseLease.release_lease",
            f"{_ACTIVITIES}.engine.load_policy:LoadPolicy.load_policy",
        )
    ),
    Pool.TRAINER: PoolSpec(
        activities=(
            f"{_ACTIVITIES}.trainer.import_policy:ImportPolicy.import_policy",
            f"{_ACTIVITIES}.trainer.build_batch:BuildBatch.build_batch",
            f"{_ACTIVITIES}.trainer.train_step:TrainStep.train_step",
        )
    ),
}
