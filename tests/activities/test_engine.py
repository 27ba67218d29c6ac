"""Leases, publication and care of an engine whose server is a fake."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from loopwright.activities.engine.acquire_lease import AcquireLease
from loopwright.activities.engine.keeper import EngineKeeper
from loopwright.activities.engine.leases import Leases
from loopwright.activities.engine.load_policy import LoadPolicy
from loopwright.activities.engine.policy_directories import PolicyDirectories
from loopwright.adapters.vllm_admin import VllmAdmin
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.engines import AcquireLeaseRequest, InFlight, LoadPolicyRequest
from loopwright.contracts.failures import ContractError, EngineUnavailable, StoreError
from loopwright.contracts.policies import CheckpointRef, PolicyVersion


@dataclass
class FakeAdmin(VllmAdmin):
    """A server that serves what it was told to, until it restarts or fails."""

    label: str = "default"
    paused: bool = False
    failure: Exception | None = None
    published: list[str] = field(default_factory=list)

    async def served_label(self) -> str:
        return self.label

    async def is_paused(self) -> bool:
        return self.paused

    async def resume(self) -> None:
        self.paused = False

    async def publish(
        self, directory: Path, label: str, *, in_flight: InFlight = "re_prefill"
    ) -> None:
        if self.failure is not None:
            self.label = "unpublished"
            raise self.failure
        assert directory.is_dir()
        self.label = label
        self.published.append(label)

    def restart(self) -> None:
        """Forget everything, as a process that was killed does."""
        self.label, self.paused = "default", False


def checkpoint(version: int, policy_id: str = "p") -> CheckpointRef:
    manifest = ArtifactRef(
        key=f"{policy_id}/{version}", sha256=f"{version:064d}", num_bytes=1, kind="checkpoint"
    )
    return CheckpointRef(
        policy=PolicyVersion(policy_id=policy_id, version=version), manifest=manifest
    )


@dataclass
class Engine:
    """An engine with all that its worker has."""

    folder: Path
    running: set[str]
    admin: FakeAdmin
    fetched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leases = self.read_leases()
        self.directories = PolicyDirectories(self.folder / "policies", self.fetch, num_kept=2)
        self.keeper = EngineKeeper(self.admin, self.leases, self.directories)

    def read_leases(self) -> Leases:
        return Leases(self.folder / "engines" / "main.json", is_running=self.is_running)

    async def is_running(self, workflow_id: str) -> bool:
        return workflow_id in self.running

    def fetch(self, ref: CheckpointRef, directory: Path) -> None:
        self.fetched.append(ref.policy.label)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "model.safetensors").write_bytes(b"weights")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(folder=tmp_path, running={"loop/a", "loop/b"}, admin=FakeAdmin())


async def test_second_loop_is_told_who_has_the_engine(engine: Engine) -> None:
    assert await engine.leases.acquire("loop/a") == "loop/a"
    assert await engine.leases.acquire("loop/b") == "loop/a"
    await engine.leases.release("loop/b")
    assert await engine.leases.acquire("loop/a") == "loop/a"


async def test_released_engine_goes_to_the_next(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    await engine.leases.release("loop/a")
    assert await engine.leases.acquire("loop/b") == "loop/b"


async def test_lease_of_a_workflow_that_is_gone_is_void(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    engine.running.remove("loop/a")
    assert await engine.leases.acquire("loop/b") == "loop/b"


async def test_lease_survives_the_worker(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    assert await engine.read_leases().acquire("loop/b") == "loop/a"


def test_damaged_record_is_named_and_not_overwritten(engine: Engine) -> None:
    path = engine.folder / "engines" / "main.json"
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(ContractError, match=r"main\.json is not the record of an engine"):
        engine.read_leases()
    assert path.read_text() == "{"


async def test_engine_of_another_model_is_refused_with_advice(
    engine: Engine, activity: ActivityEnvironment
) -> None:
    lease = AcquireLease(engine.leases, model_fingerprint="a" * 64, model=Path("/models/a"))
    request = AcquireLeaseRequest(engine="main", holder="loop/a", model_fingerprint="b" * 64)
    with pytest.raises(ContractError, match=r"/models/a .*loopwright up --model"):
        await activity.run(lease.acquire_lease, request)


async def test_publication_needs_the_lease(engine: Engine, activity: ActivityEnvironment) -> None:
    await engine.leases.acquire("loop/a")
    request = LoadPolicyRequest(engine="main", holder="loop/b", checkpoint=checkpoint(1))
    with pytest.raises(ContractError, match="held by loop/a"):
        await activity.run(LoadPolicy(engine.keeper).load_policy, request)
    assert engine.admin.label == "default"


async def test_publishing_the_served_version_again_does_nothing(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    for _ in range(2):
        assert await engine.keeper.publish(checkpoint(1), holder="loop/a") == "p@1"
    assert engine.admin.published == ["p@1"]


async def test_restarted_server_is_given_its_version_back(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    await engine.keeper.publish(checkpoint(1), holder="loop/a")
    engine.admin.restart()
    await engine.keeper.look_after()
    assert engine.admin.label == "p@1"
    assert engine.fetched == ["p@1"]


async def test_restarted_worker_and_server_know_their_version(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    await engine.keeper.publish(checkpoint(1), holder="loop/a")
    engine.admin.restart()
    again = Engine(folder=engine.folder, running=engine.running, admin=engine.admin)
    await again.keeper.look_after()
    assert engine.admin.label == "p@1"


async def test_directory_of_another_process_is_proved_before_it_is_served(engine: Engine) -> None:
    engine.directories.get(checkpoint(1))
    again = Engine(folder=engine.folder, running=engine.running, admin=engine.admin)
    for _ in range(2):
        again.directories.get(checkpoint(1))
    assert again.fetched == ["p@1"]


async def test_server_left_paused_is_resumed(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    await engine.keeper.publish(checkpoint(1), holder="loop/a")
    engine.admin.paused = True
    await engine.keeper.look_after()
    assert not engine.admin.paused


async def test_failed_publication_is_made_good_later(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    engine.admin.failure = EngineUnavailable("killed between pause and resume")
    with pytest.raises(EngineUnavailable):
        await engine.keeper.publish(checkpoint(1), holder="loop/a")
    engine.admin.failure = None
    await engine.keeper.look_after()
    assert engine.admin.label == "p@1"


async def test_checkpoint_that_cannot_be_fetched_does_not_become_the_one_to_serve(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.leases.acquire("loop/a")
    await engine.keeper.publish(checkpoint(1), holder="loop/a")

    def lost(_ref: CheckpointRef, _directory: Path) -> None:
        raise StoreError("gone")

    monkeypatch.setattr(engine.directories, "_materialise", lost)
    with pytest.raises(StoreError):
        await engine.keeper.publish(checkpoint(2), holder="loop/a")
    await engine.keeper.look_after()
    assert engine.admin.label == "p@1"


async def test_old_versions_are_pruned_and_the_served_one_is_kept(engine: Engine) -> None:
    await engine.leases.acquire("loop/a")
    for version in range(1, 5):
        await engine.keeper.publish(checkpoint(version), holder="loop/a")
    kept = sorted(path.name.split("-0")[0] for path in (engine.folder / "policies").iterdir())
    assert kept == ["p~403", "p~404"]
