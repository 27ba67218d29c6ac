"""trainer.import_policy: a model directory becomes version 0 of a policy."""

from importlib.resources import as_file, files
from pathlib import Path

from temporalio import activity

from loopwright.activities.heartbeats import heartbeating_thread
from loopwright.adapters.model_directory import model_problem
from loopwright.contracts.configs import PICO
from loopwright.contracts.failures import UserError
from loopwright.contracts.policies import CheckpointRef
from loopwright.contracts.training import ImportPolicyRequest
from loopwright.core.protocols import ObjectStore
from loopwright.learning.checkpoints import check_trainable, import_directory
from loopwright.trajectories.rendering import Renderer


class ImportPolicy:
    """Stores model directories as checkpoints."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="trainer.import_policy")
    def import_policy(self, request: ImportPolicyRequest) -> CheckpointRef:
        """Store the directory; the same content gives the same checkpoint.

        Raises:
            UserError: there is no such directory, or no model in it that can be trained.
            ContractError: its chat template cannot be rendered token for token.
        """
        with heartbeating_thread():
            if request.model == PICO:
                with as_file(files("loopwright") / "policies" / PICO) as directory:
                    return self._import(directory, request)
            return self._import(Path(request.model).expanduser(), request)

    def _import(self, directory: Path, request: ImportPolicyRequest) -> CheckpointRef:
        if problem := model_problem(directory):
            raise UserError(
                f"policy.model: {problem}, on the trainer's host; "
                f"expected {PICO} or a model directory"
            )
        Renderer(directory)
        check_trainable(directory)
        return import_directory(self._store, directory, request.policy, prefix=request.prefix)
