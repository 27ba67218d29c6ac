"""trainer.train_step: a batch moves the policy to its next version."""

import logging
import time

from temporalio import activity

from loopwright.activities.heartbeats import heartbeating_thread
from loopwright.adapters.artifacts import fetch
from loopwright.adapters.checkpoint_files import digest_of, find_checkpoint, read_manifest
from loopwright.contracts.policies import CheckpointRef
from loopwright.contracts.training import TrainStepRequest, TrainStepResult
from loopwright.core.protocols import ObjectStore
from loopwright.learning import batches
from loopwright.learning.checkpoints import keep_checkpoint, load_trainer
from loopwright.learning.trainer import Trainer

_logger = logging.getLogger(__name__)


class TrainStep:
    """Trains; the newest version stays in memory for the next iteration."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._warm: tuple[str, Trainer] | None = None

    @activity.defn(name="trainer.train_step")
    def train_step(self, request: TrainStepRequest) -> TrainStepResult:
        """Update the parent on the batch and store the new checkpoint.

        Idempotent: a repeated request gives the checkpoint that the first one stored.

        Raises:
            TrainingDiverged: the update is not finite, or the batch is not the parent's.
            StoreError: the parent or the batch could not be had, or the result not be stored.
        """
        started = time.monotonic()
        with heartbeating_thread():
            found = find_checkpoint(
                self._store, request.policy, request=digest_of(request), prefix=request.prefix
            )
            checkpoint = found or self._train(request)
            metrics = read_manifest(self._store, checkpoint.manifest).metrics
        return TrainStepResult(
            checkpoint=checkpoint, metrics=metrics, seconds=time.monotonic() - started
        )

    def _train(self, request: TrainStepRequest) -> CheckpointRef:
        # Whatever goes wrong on the way, half-trained weights are not kept warm.
        trainer, self._warm = self._trainer(request.parent), None
        batch = batches.decode(fetch(self._store, request.batch))
        metrics = trainer.reinforce(
            batch,
            request.config,
            version=request.parent.policy.version,
            temperature=request.temperature,
            seed=request.seed,
        )
        checkpoint = keep_checkpoint(
            self._store,
            trainer,
            request.policy,
            parent=request.parent,
            request=digest_of(request),
            metrics=metrics,
            prefix=request.prefix,
        )
        self._warm = (checkpoint.manifest.sha256, trainer)
        return checkpoint

    def _trainer(self, parent: CheckpointRef) -> Trainer:
        if self._warm is not None and self._warm[0] == parent.manifest.sha256:
            return self._warm[1]
        _logger.info("loading %s", parent.policy.label)
        return load_trainer(self._store, parent)
