"""Typed activity signatures; ``loopwright.activities`` has the bodies, under the same names."""

from temporalio import activity

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.engines import (
    AcquireLeaseRequest,
    AcquireLeaseResult,
    LoadPolicyRequest,
    LoadPolicyResult,
    ReleaseLeaseRequest,
)
from loopwright.contracts.episodes import (
    GradeEpisodeRequest,
    GradeEpisodeResult,
    TakeTurnsRequest,
    TakeTurnsResult,
)
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
from loopwright.contracts.policies import CheckpointRef
from loopwright.contracts.schedules import (
    AskLoopRequest,
    AskLoopResult,
    AwaitLoopRequest,
    AwaitLoopResult,
)
from loopwright.contracts.training import (
    BuildBatchRequest,
    BuildBatchResult,
    ImportPolicyRequest,
    TrainStepRequest,
    TrainStepResult,
)


@activity.defn(name="control.select_tasks")
async def select_tasks(request: SelectTasksRequest) -> SelectTasksResult:
    """Pick distinct tasks by seed."""
    raise NotImplementedError


@activity.defn(name="control.ask_loop")
async def ask_loop(request: AskLoopRequest) -> AskLoopResult:
    """Send a loop an update, once whatever happens."""
    raise NotImplementedError


@activity.defn(name="control.await_loop")
async def await_loop(request: AwaitLoopRequest) -> AwaitLoopResult:
    """Wait until a loop has done what it was asked."""
    raise NotImplementedError


@activity.defn(name="control.score_group")
async def score_group(request: ScoreGroupRequest) -> GroupResult:
    """Turn a group's rewards into advantages and store its manifest."""
    raise NotImplementedError


@activity.defn(name="control.park_group")
async def park_group(request: ParkGroupRequest) -> ArtifactRef:
    """Store where a group stands, so that a later iteration can go on with it."""
    raise NotImplementedError


@activity.defn(name="control.load_parked")
async def load_parked(request: LoadParkedRequest) -> ParkedGroup:
    """Read where a parked group stands."""
    raise NotImplementedError


@activity.defn(name="control.write_report")
async def write_report(request: WriteReportRequest) -> ArtifactRef:
    """Store the breakdown of an iteration or evaluation."""
    raise NotImplementedError


@activity.defn(name="episode.take_turns")
async def take_turns(request: TakeTurnsRequest) -> TakeTurnsResult:
    """Take turns until a stop or the chunk's end, each committed before the next."""
    raise NotImplementedError


@activity.defn(name="episode.grade_episode")
async def grade_episode(request: GradeEpisodeRequest) -> GradeEpisodeResult:
    """Grade the final state in a fresh jail and store the trajectory."""
    raise NotImplementedError


@activity.defn(name="engine.acquire_lease")
async def acquire_lease(request: AcquireLeaseRequest) -> AcquireLeaseResult:
    """Lease the engine to one holder, unless another living one has it."""
    raise NotImplementedError


@activity.defn(name="engine.release_lease")
async def release_lease(request: ReleaseLeaseRequest) -> None:
    """Give the engine back."""
    raise NotImplementedError


@activity.defn(name="engine.load_policy")
async def load_policy(request: LoadPolicyRequest) -> LoadPolicyResult:
    """Publish a version: pause, reload, name, reset caches, resume, read back."""
    raise NotImplementedError


@activity.defn(name="trainer.import_policy")
async def import_policy(request: ImportPolicyRequest) -> CheckpointRef:
    """Store a model directory as version 0 of a policy."""
    raise NotImplementedError


@activity.defn(name="trainer.build_batch")
async def build_batch(request: BuildBatchRequest) -> BuildBatchResult:
    """Gather trajectories and advantages into one stored batch."""
    raise NotImplementedError


@activity.defn(name="trainer.train_step")
async def train_step(request: TrainStepRequest) -> TrainStepResult:
    """Update the policy and store the new checkpoint, manifest last."""
    raise NotImplementedError
