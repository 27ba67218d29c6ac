"""Fake activities under the names of the real ones, for tests of workflows."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from loopwright.contracts.artifacts import ArtifactKind, ArtifactRef
from loopwright.contracts.engines import (
    AcquireLeaseRequest,
    AcquireLeaseResult,
    LoadPolicyRequest,
    LoadPolicyResult,
    ReleaseLeaseRequest,
)
from loopwright.contracts.episodes import (
    Grade,
    GradeEpisodeRequest,
    GradeEpisodeResult,
    TakeTurnsRequest,
    TakeTurnsResult,
    Verdict,
)
from loopwright.contracts.failures import LoopError
from loopwright.contracts.groups import (
    GroupResult,
    LoadParkedRequest,
    ParkedGroup,
    ParkGroupRequest,
    ScoreGroupRequest,
)
from loopwright.contracts.iterations import (
    SelectTasksRequest,
    SelectTasksResult,
    WriteReportRequest,
)
from loopwright.contracts.policies import CheckpointRef, PolicySpan
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.training import (
    BuildBatchRequest,
    BuildBatchResult,
    ImportPolicyRequest,
    TrainStepRequest,
    TrainStepResult,
)
from loopwright.contracts.turns import StopReason, TurnHead
from loopwright.core import admission, curriculum, summaries


def artifact(key: str, kind: ArtifactKind = "checkpoint") -> ArtifactRef:
    """Make a reference to nothing."""
    return ArtifactRef(key=key, sha256="0" * 64, num_bytes=0, kind=kind)


def reward_by_index(request: GradeEpisodeRequest) -> float | None:
    """Let odd episodes pass and even ones fail, so that every group has a signal."""
    return float(request.episode.index % 2)


class Turnstile(asyncio.Event):
    """Lets so many through, and holds the rest until it is set."""

    def __init__(self, num_free: int) -> None:
        super().__init__()
        self._num_free = num_free

    async def wait(self) -> Any:
        """Pass, or wait."""
        self._num_free -= 1
        return self._num_free >= 0 or await super().wait()


@dataclass
class FakeActivities:
    """Bodies that remember what they were asked; a test changes the fields it is about."""

    reward: Callable[[GradeEpisodeRequest], float | None] = reward_by_index
    failures: dict[str, list[ApplicationError | LoopError]] = field(default_factory=dict)
    """Errors to raise by activity name, the next one first."""
    holder: str | None = None
    """Workflow that holds the engine."""
    turns_per_episode: int = 1
    hold: dict[str, asyncio.Event] = field(default_factory=dict)
    """Activities that wait for their event, by name."""
    is_held: Callable[[Any], bool] = lambda request: True
    """Which requests of those wait."""
    ends_softly: bool = True
    """Whether a cancelled take_turns ends its turn and tells so."""
    num_spares: int = 0
    """Tasks that there are besides those asked for."""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    parked: dict[str, ParkedGroup] = field(default_factory=dict)
    """Parked groups by the key of their artifact."""

    def counts(self) -> Counter[str]:
        """Count the calls by activity name."""
        return Counter(name for name, _ in self.calls)

    def requests(self, name: str) -> list[Any]:
        """Give the requests of one activity, in order."""
        return [request for called, request in self.calls if called == name]

    async def _enter(self, request: Any) -> None:
        name = activity.info().activity_type
        self.calls.append((name, request))
        if name in self.hold and self.is_held(request):
            await self.hold[name].wait()
        if self.failures.get(name):
            raise self.failures[name].pop(0)

    def all(self) -> list[Callable[..., Any]]:
        """Give every body, for a worker."""
        return [
            self.select_tasks,
            self.score_group,
            self.park_group,
            self.load_parked,
            self.write_report,
            self.take_turns,
            self.grade_episode,
            self.acquire_lease,
            self.release_lease,
            self.load_policy,
            self.import_policy,
            self.build_batch,
            self.train_step,
        ]

    @activity.defn(name="control.select_tasks")
    async def select_tasks(self, request: SelectTasksRequest) -> SelectTasksResult:
        await self._enter(request)
        environments = request.environments
        weights = curriculum.task_weights(environments, request.split)
        counts = curriculum.shares(weights, request.num_tasks)
        return SelectTasksResult(
            tasks=tuple(
                TaskRef(environment=environment.id, task_id=f"t{i}")
                for environment, count in zip(environments, counts, strict=True)
                for i in range(count)
            ),
            spares=tuple(
                TaskRef(environment=environments[0].id, task_id=f"spare{i}")
                for i in range(min(request.num_spares, self.num_spares))
            ),
        )

    @activity.defn(name="control.score_group")
    async def score_group(self, request: ScoreGroupRequest) -> GroupResult:
        await self._enter(request)
        size = request.size or len(request.episodes)
        return summaries.of_group(
            request.task,
            request.episodes,
            size=size,
            admission=admission.decide(request.episodes, size=size),
            manifest=artifact(f"{request.prefix}/group", "group"),
        )

    @activity.defn(name="control.park_group")
    async def park_group(self, request: ParkGroupRequest) -> ArtifactRef:
        await self._enter(request)
        ref = artifact(f"{request.group.episode.prefix}/parked-{len(self.parked)}", "parked")
        self.parked[ref.key] = ParkedGroup(group=request.group, episodes=request.episodes)
        return ref

    @activity.defn(name="control.load_parked")
    async def load_parked(self, request: LoadParkedRequest) -> ParkedGroup:
        await self._enter(request)
        return self.parked[request.parked.key]

    @activity.defn(name="control.write_report")
    async def write_report(self, request: WriteReportRequest) -> ArtifactRef:
        await self._enter(request)
        return artifact(f"{request.prefix}/report", "report")

    @activity.defn(name="episode.take_turns")
    async def take_turns(self, request: TakeTurnsRequest) -> TakeTurnsResult:
        done = min(request.head.num_turns + request.max_turns, self.turns_per_episode)
        try:
            await self._enter(request)
        except asyncio.CancelledError:
            if not self.ends_softly:
                raise
            done = min(request.head.num_turns + 1, done)
        version = request.episode.policy.version
        return TakeTurnsResult(
            head=TurnHead(num_turns=done, digest=f"d{done}"),
            stop_reason=StopReason.COMPLETED if done == self.turns_per_episode else None,
            num_completion_tokens=10 * done,
            policy_span=PolicySpan(oldest=version, newest=version),
        )

    @activity.defn(name="episode.grade_episode")
    async def grade_episode(self, request: GradeEpisodeRequest) -> GradeEpisodeResult:
        await self._enter(request)
        reward = self.reward(request)
        verdict = {None: Verdict.NO_VERDICT, 1.0: Verdict.PASS}.get(reward, Verdict.FAIL)
        return GradeEpisodeResult(
            grade=Grade(verdict=verdict, components={}, reward=reward),
            trajectory=artifact(f"{request.episode.prefix}/trajectory", "trajectory"),
            first_answer_passed=verdict == Verdict.PASS,
        )

    @activity.defn(name="engine.acquire_lease")
    async def acquire_lease(self, request: AcquireLeaseRequest) -> AcquireLeaseResult:
        await self._enter(request)
        self.holder = self.holder or request.holder
        return AcquireLeaseResult(is_granted=self.holder == request.holder, holder=self.holder)

    @activity.defn(name="engine.release_lease")
    async def release_lease(self, request: ReleaseLeaseRequest) -> None:
        await self._enter(request)
        if self.holder == request.holder:
            self.holder = None

    @activity.defn(name="engine.load_policy")
    async def load_policy(self, request: LoadPolicyRequest) -> LoadPolicyResult:
        await self._enter(request)
        return LoadPolicyResult(label=request.checkpoint.policy.label, seconds=0.0)

    @activity.defn(name="trainer.import_policy")
    async def import_policy(self, request: ImportPolicyRequest) -> CheckpointRef:
        await self._enter(request)
        return CheckpointRef(policy=request.policy, manifest=artifact(f"{request.prefix}/v0"))

    @activity.defn(name="trainer.build_batch")
    async def build_batch(self, request: BuildBatchRequest) -> BuildBatchResult:
        await self._enter(request)
        return BuildBatchResult(
            batch=artifact(f"{request.prefix}/batch", "batch"),
            num_trajectories=len(request.groups),
            num_trained_tokens=1,
        )

    @activity.defn(name="trainer.train_step")
    async def train_step(self, request: TrainStepRequest) -> TrainStepResult:
        await self._enter(request)
        return TrainStepResult(
            checkpoint=CheckpointRef(
                policy=request.policy, manifest=artifact(f"{request.prefix}/checkpoint")
            ),
            metrics={"loss": 0.5},
            seconds=0.0,
        )
