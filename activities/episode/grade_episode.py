"""episode.grade_episode: final state and hidden material in a fresh jail give the reward."""

import hashlib
from collections.abc import Sequence

from temporalio import activity

from loopwright.activities.episode.recording_jail import RecordingJail
from loopwright.activities.episode.resources import (
    EpisodeResources,
    environment_errors,
    environment_of,
)
from loopwright.activities.heartbeats import heartbeating
from loopwright.adapters.artifacts import keep
from loopwright.contracts.episodes import (
    Grade,
    GradeEpisodeRequest,
    GradeEpisodeResult,
    Verdict,
)
from loopwright.contracts.failures import ArtifactDamaged, ContractError
from loopwright.contracts.tasks import Task
from loopwright.contracts.turns import TurnRecord
from loopwright.contracts.workspaces import Workspace
from loopwright.trajectories import codec
from loopwright.trajectories.assembly import assemble_samples
from loopwright.trajectories.stored import StoredTrajectory, find_trajectory
from loopwright.trajectories.trajectory import Trajectory


class GradeEpisode:
    """Grades finished episodes and writes their trajectories."""

    def __init__(self, resources: EpisodeResources) -> None:
        self._resources = resources

    @activity.defn(name="episode.grade_episode")
    async def grade_episode(self, request: GradeEpisodeRequest) -> GradeEpisodeResult:
        """Grade the state that the head leads to; no verdict gives no reward.

        Idempotent: a repeated request finds the trajectory of the one before it.
        """
        async with heartbeating(), self._resources.place_of(request.episode):
            in_store = self._resources.in_store_thread
            graded = await in_store(self._find, request)
            if graded is None:
                chain = await in_store(self._resources.load_chain, request.episode, request.head)
                # Hidden material enters the jail in files and standard input: no record holds it.
                jail = RecordingJail(self._resources.jail, max_stdin_bytes=0)
                trajectory = await self._resources.in_jail_thread(
                    self._grade, request, chain.records, jail
                )
                graded = await in_store(self._keep, trajectory, jail.workspaces)
            return _result(graded)

    def _find(self, request: GradeEpisodeRequest) -> StoredTrajectory | None:
        try:
            return find_trajectory(
                self._resources.store, request.episode.prefix, head=request.head.digest
            )
        except (ArtifactDamaged, ContractError) as error:
            activity.logger.warning("graded once more: %s", error)
            return None

    def _grade(
        self, request: GradeEpisodeRequest, records: Sequence[TurnRecord], jail: RecordingJail
    ) -> Trajectory:
        episode = request.episode
        environment = environment_of(episode)
        task = environment.load_task(episode.task.task_id)
        state = records[-1].state if records else environment.pose(task).state
        with environment_errors(environment):
            grade = environment.grade(task, state, jail=jail, limits=episode.budgets.limits)
        return Trajectory(
            episode=episode.prefix,
            head=request.head.digest,
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
            grading=jail.commands,
        )

    def _keep(self, trajectory: Trajectory, workspaces: Sequence[Workspace]) -> StoredTrajectory:
        """Store the workspaces first: a trajectory names none that cannot be had."""
        for workspace in workspaces:
            self._resources.workspaces.keep(workspace)
        ref = keep(
            self._resources.store,
            codec.encode(trajectory),
            prefix=trajectory.episode,
            name="trajectory",
            suffix=".json.gz",
            kind="trajectory",
        )
        return StoredTrajectory(trajectory, ref)


def _result(graded: StoredTrajectory) -> GradeEpisodeResult:
    found = graded.trajectory
    return GradeEpisodeResult(
        grade=Grade(verdict=found.verdict, components=found.components, reward=found.reward),
        trajectory=graded.ref,
        first_answer_passed=found.verdict == Verdict.PASS and len(found.turn_rewards) == 1,
    )


def hidden_digest(task: Task) -> str:
    """Digest the hidden material a grade rests on."""
    text = "\n".join(case.model_dump_json() for case in task.hidden_tests)
    return hashlib.sha256(text.encode()).hexdigest()
