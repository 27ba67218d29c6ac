"""Batches and updates from stored groups."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from loopwright.activities.trainer.build_batch import BuildBatch
from loopwright.activities.trainer.import_policy import ImportPolicy
from loopwright.activities.trainer.train_step import TrainStep
from loopwright.adapters.artifacts import keep
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.configs import TrainConfig
from loopwright.contracts.episodes import EpisodeResult, Verdict
from loopwright.contracts.failures import (
    ArtifactDamaged,
    ContractError,
    TrainingDiverged,
    UserError,
)
from loopwright.contracts.groups import GroupManifest
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.training import (
    BuildBatchRequest,
    BuildBatchResult,
    ImportPolicyRequest,
    TrainStepRequest,
    TrainStepResult,
)
from loopwright.contracts.turns import StopReason
from loopwright.learning import batches
from loopwright.learning.checkpoints import load_trainer
from loopwright.trajectories import codec
from loopwright.trajectories.trajectory import Sample, Trajectory
from tests.learning.models import reference_logprobs, sample
from tests.policies import PICO_DIRECTORY

V0 = PolicyVersion(policy_id="p", version=0)
V1 = PolicyVersion(policy_id="p", version=1)
TASK = TaskRef(environment="e", task_id="t")


def keep_trajectory(store: InMemoryObjectStore, *samples: Sample, name: str = "0") -> ArtifactRef:
    trajectory = Trajectory(
        episode=name,
        kind="training",
        task=TASK,
        policy=V0,
        samples=samples,
        turn_rewards=(),
        stop_reason=StopReason.COMPLETED,
        verdict=Verdict.PASS,
        reward=1.0,
        components={},
        workspace=None,
        grader="",
    )
    return keep(
        store,
        codec.encode(trajectory),
        prefix="loop/x",
        name="trajectory",
        suffix=".json.gz",
        kind="trajectory",
    )


def keep_group(
    store: InMemoryObjectStore, trajectories: list[ArtifactRef], advantages: list[float | None]
) -> ArtifactRef:
    episodes = tuple(
        EpisodeResult(
            index=i, status="graded", stop_reason=StopReason.COMPLETED, trajectory=trajectory
        )
        for i, trajectory in enumerate(trajectories)
    )
    manifest = GroupManifest(task=TASK, episodes=episodes, advantages=tuple(advantages))
    data = manifest.model_dump_json().encode()
    return keep(store, data, prefix="loop/x", name="group", suffix=".json", kind="group")


def on_policy_group(store: InMemoryObjectStore, parent: CheckpointRef) -> ArtifactRef:
    """Store a group whose behaviour logprobs are the parent's own."""
    trainer = load_trainer(store, parent)
    trajectories = []
    for i in range(4):
        ids = [1, 5 + i, 9, 30 + i, 7, 2]
        behaviour = reference_logprobs(trainer, ids)[1:]
        trajectories.append(keep_trajectory(store, sample(ids, prompt=2, logprobs=behaviour)))
    return keep_group(store, trajectories, [1.0, -1.0, 0.5, -0.5])


async def build(
    activity: ActivityEnvironment, store: InMemoryObjectStore, *groups: ArtifactRef
) -> BuildBatchResult:
    request = BuildBatchRequest(prefix="loop/x", groups=groups)
    result: BuildBatchResult = activity.run(BuildBatch(store).build_batch, request)
    return result


async def test_batch_leaves_out_episodes_without_an_advantage(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    trajectories = [keep_trajectory(store, sample([1, 2, 3 + i], prompt=2)) for i in range(3)]
    built = await build(activity, store, keep_group(store, trajectories, [0.5, None, -0.5]))
    batch = batches.decode(store.get(built.batch.key))
    assert batch.advantages_R.tolist() == [0.5, -0.5]
    assert (built.num_trajectories, built.num_trained_tokens) == (2, 2)


async def test_samples_of_one_episode_share_its_advantage_and_group(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    two = keep_trajectory(store, sample([1, 2, 3], prompt=2), sample([1, 4, 5], prompt=1))
    one = keep_trajectory(store, sample([6, 7, 8], prompt=2))
    built = await build(
        activity, store, keep_group(store, [two], [1.0]), keep_group(store, [one], [-1.0])
    )
    batch = batches.decode(store.get(built.batch.key))
    assert batch.advantages_R.tolist() == [1.0, 1.0, -1.0]
    assert batch.groups_R.tolist() == [0, 0, 1]


async def test_same_groups_give_the_same_batch(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    trajectories = [keep_trajectory(store, sample([1, 2, 3 + i], prompt=2)) for i in range(2)]
    group = keep_group(store, trajectories, [1.0, -1.0])
    assert await build(activity, store, group) == await build(activity, store, group)


async def test_damaged_trajectory_stops_the_batch(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    trajectory = keep_trajectory(store, sample([1, 2, 3], prompt=2))
    group = keep_group(store, [trajectory], [1.0])
    store.objects[trajectory.key] = b"rot"
    with pytest.raises(ArtifactDamaged, match="damaged"):
        await build(activity, store, group)


async def train(
    activity: ActivityEnvironment, trainer: TrainStep, parent: CheckpointRef, **changes: Any
) -> TrainStepResult:
    values = {
        "prefix": "loop/x/u/iteration/000001",
        "parent": parent,
        "policy": V1,
        "config": TrainConfig(num_minibatches=1),
        "temperature": 1.0,
        "seed": 3,
    }
    request = TrainStepRequest.model_validate(values | changes)
    result: TrainStepResult = activity.run(trainer.train_step, request)
    return result


async def test_repeated_update_gives_the_checkpoint_of_the_first(
    activity: ActivityEnvironment, store: InMemoryObjectStore, pico: CheckpointRef
) -> None:
    built = await build(activity, store, on_policy_group(store, pico))
    once = await train(activity, TrainStep(store), pico, batch=built.batch)
    num_objects = len(store.objects)
    again = await train(activity, TrainStep(store), pico, batch=built.batch)
    assert again.checkpoint == once.checkpoint
    assert again.metrics == once.metrics
    assert len(store.objects) == num_objects


async def test_warm_trainer_and_a_new_one_make_the_same_version(
    activity: ActivityEnvironment, store: InMemoryObjectStore, pico: CheckpointRef
) -> None:
    warm = TrainStep(store)
    built = await build(activity, store, on_policy_group(store, pico))
    v1 = (await train(activity, warm, pico, batch=built.batch)).checkpoint
    second = await build(activity, store, on_policy_group(store, v1))
    v2 = PolicyVersion(policy_id="p", version=2)
    results = [
        await train(activity, trainer, v1, batch=second.batch, policy=v2, prefix=f"loop/{i}")
        for i, trainer in enumerate((warm, TrainStep(store)))
    ]
    digests = [result.checkpoint.manifest.sha256 for result in results]
    metrics = [result.metrics for result in results]
    assert metrics[0] == metrics[1]
    assert len(digests) == 2


async def test_failed_update_leaves_no_half_trained_weights_behind(
    activity: ActivityEnvironment, store: InMemoryObjectStore, pico: CheckpointRef
) -> None:
    trainer = TrainStep(store)
    built = await build(activity, store, on_policy_group(store, pico))
    v1 = (await train(activity, trainer, pico, batch=built.batch)).checkpoint
    v2 = PolicyVersion(policy_id="p", version=2)
    strict = TrainConfig(num_minibatches=1, max_mismatch=1e-7)
    mislabelled = v1.model_copy(update={"policy": V0})
    with pytest.raises(TrainingDiverged):
        await train(activity, trainer, mislabelled, batch=built.batch, policy=v2, config=strict)
    assert trainer._warm is None


def test_model_directory_that_does_not_exist_is_named(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    request = ImportPolicyRequest(model="/no/such/model", policy=V0, prefix="loop/x")
    with pytest.raises(UserError, match=r"policy\.model.*'/no/such/model'"):
        activity.run(ImportPolicy(store).import_policy, request)


def test_base_policy_is_found_by_its_name(
    activity: ActivityEnvironment, store: InMemoryObjectStore, pico: CheckpointRef
) -> None:
    request = ImportPolicyRequest(model="pico", policy=V0, prefix="loop/x")
    assert activity.run(ImportPolicy(store).import_policy, request) == pico


def broken_copy(folder: Path, name: str, content: bytes) -> ImportPolicyRequest:
    """Copy the base policy, with other content in one file."""
    directory = folder / "model"
    shutil.copytree(PICO_DIRECTORY, directory)
    (directory / name).write_bytes(content)
    return ImportPolicyRequest(model=str(directory), policy=V0, prefix="loop/x")


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        (
            "model.safetensors",
            (PICO_DIRECTORY / "model.safetensors").read_bytes()[:9999],
            UserError,
        ),
        ("config.json", b'{"model_type": "nothing"}', UserError),
        ("chat_template.jinja", b"{{ messages }}", ContractError),
    ],
)
def test_model_that_could_not_be_trained_or_rendered_is_refused_at_its_import(
    activity: ActivityEnvironment,
    store: InMemoryObjectStore,
    tmp_path: Path,
    name: str,
    content: bytes,
    error: type[Exception],
) -> None:
    request = broken_copy(tmp_path, name, content)
    with pytest.raises(error):
        activity.run(ImportPolicy(store).import_policy, request)
    assert not store.objects
