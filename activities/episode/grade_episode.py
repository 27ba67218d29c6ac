"""episode.grade_episode: final state and hidden material in a fresh jail give the reward."""

import hashlib
from collections.abc import Sequence

from temporalio import activity

from loopwright.activities.episode.resources import (
    EpisodeResources,
    environment_errors,
    environment_of,
)
from loopwright.activities.heartbeats import heartbeating
from loopwright.adapters.artifacts import keep
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.episodes import (
    Grade,
    GradeEpisodeRequest,
    GradeEpisodeResult,
    Verdict,
)
from loopwright.contracts.tasks import Task
from loopwright.contracts.turns import TurnRecord
from loopwright.environments.base import Environment
from loopwright.trajectories import codec
from loopwright.trajectories.assembly import assemble_samples
from loopwright.trajectories.trajectory import Trajectory


class GradeEpisode:
    """Grades finished episodes and writes their trajectories."""

    def __init__(self, resources: EpisodeResources) -> None:
        self._resources = resources

    @activity.defn(name="episode.grade_episode")
    async def grade_episode(self, request: GradeEpisodeRequest) -> GradeEpisodeResult:
        """Grade the state that the head leads to; no verdict gives no reward."""
        async with heartbeating():
            chain = await self._resources.in_store_thread(
                self._resources.load_chain, request.episode, request.head
            )
            records = chain.records
            environment = environment_of(request.episode)
            task = environment.load_task(request.episode.task.task_id)
            grade = await self._resources.in_jail_thread(
                self._grade, environment, task, request, records
            )
            ref = await self._resources.in_store_thread(self._keep, request, records, grade, task)
            return GradeEpisodeResult(
                grade=grade,
                trajectory=ref,
                first_answer_passed=grade.verdict == Verdict.PASS and len(records) == 1,
            )

    def _grade(
        self,
        environment: Environment,
        task: Task,
        request: GradeEpisodeRequest,
        records: Sequence[TurnRecord],
    ) -> Grade:
        state = records[-1].state if records else environment.pose(task).state
        with environment_errors(environment):
            return environment.grade(
                task, state, jail=self._resources.jail, limits=request.episode.budgets.limits
            )

    def _keep(
        self,
        request: GradeEpisodeRequest,
        records: Sequence[TurnRecord],
        grade: Grade,
        task: Task,
    ) -> ArtifactRef:
        episode = request.episode
        trajectory = Trajectory(
            episode=episode.prefix,
            kind=episode.kind,
            task=episode.task,
            policy=episode.policy,
            samples=assemble_samples(records),
            turn_rewards=tuple(record.turn_reward for record in records),
            stop_reason=request.stop_reason,
            verdict=grade.verdict,
            reward=grade.reward,
            components=grade.components,
            workspace=records[-1].workspace if records else None,
            grader=hidden_digest(task),
        )
        return keep(
            self._resources.store,
            codec.encode(trajectory),
            prefix=episode.prefix,
            name="trajectory",
            suffix=".json.gz",
            kind="trajectory",
        )


def hidden_digest(task: Task) -> str:
    """Digest the hidden material a grade rests on."""
    text = "\n".join(case.model_dump_json() for case in task.hidden_tests)
    return hashlib.sha256(text.encode()).hexdigest()
