"""trainer.build_batch: trajectories and advantages of admitted groups become one batch."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from temporalio import activity

from loopwright.activities.heartbeats import heartbeating_thread
from loopwright.adapters.artifacts import fetch, keep
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.groups import GroupManifest
from loopwright.contracts.training import BuildBatchRequest, BuildBatchResult
from loopwright.core.protocols import ObjectStore
from loopwright.learning import batches
from loopwright.learning.batches import Batch, Row
from loopwright.trajectories import codec
from loopwright.trajectories.trajectory import Trajectory

_READERS = 8


class BuildBatch:
    """Gathers what an iteration learns from."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="trainer.build_batch")
    def build_batch(self, request: BuildBatchRequest) -> BuildBatchResult:
        """Store the batch; the same groups give the same artifact.

        Raises:
            ArtifactDamaged: a manifest or trajectory is missing or damaged.
            ContractError: a trajectory has a newer schema.
        """
        with heartbeating_thread():
            credited = [
                (index, trajectory, advantage)
                for index, ref in enumerate(request.groups)
                for trajectory, advantage in self._credited(ref)
            ]
            trajectories = self._fetch_all([trajectory for _, trajectory, _ in credited])
            rows = [
                Row(sample=sample, advantage=advantage, group=group)
                for (group, _, advantage), trajectory in zip(credited, trajectories, strict=True)
                for sample in trajectory.samples
                if any(sample.loss_mask)
            ]
            batch = Batch.of(rows)
            return BuildBatchResult(
                batch=self._keep(batch, request.prefix),
                num_trajectories=len(trajectories),
                num_trained_tokens=batch.num_trained_tokens,
            )

    def _credited(self, ref: ArtifactRef) -> Iterator[tuple[ArtifactRef, float]]:
        """Give the trajectories of a group that have an advantage, with it."""
        manifest = GroupManifest.model_validate_json(fetch(self._store, ref))
        for episode, advantage in zip(manifest.episodes, manifest.advantages, strict=True):
            if episode.trajectory is not None and advantage is not None:
                yield episode.trajectory, advantage

    def _fetch_all(self, refs: list[ArtifactRef]) -> list[Trajectory]:
        with ThreadPoolExecutor(_READERS, thread_name_prefix="batch") as threads:
            return list(threads.map(lambda ref: codec.decode(fetch(self._store, ref)), refs))

    def _keep(self, batch: Batch, prefix: str) -> ArtifactRef:
        return keep(
            self._store,
            batches.encode(batch),
            prefix=prefix,
            name="batch",
            suffix=".safetensors",
            kind="batch",
        )
