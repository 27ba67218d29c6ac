"""Trajectories are found by the prefix of their episode."""

import pytest

from loopwright.adapters.artifacts import keep
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.failures import ArtifactDamaged, ContractError
from loopwright.trajectories import codec
from loopwright.trajectories.stored import find_trajectory
from loopwright.trajectories.trajectory import Trajectory
from tests.trajectories.test_codec import TRAJECTORY

PREFIX = TRAJECTORY.episode


@pytest.fixture
def store() -> InMemoryObjectStore:
    return InMemoryObjectStore()


def stored(store: InMemoryObjectStore, prefix: str = PREFIX, **changes: object) -> ArtifactRef:
    data = codec.encode(TRAJECTORY.model_copy(update=changes))
    return keep(store, data, prefix=prefix, name="trajectory", suffix=".json.gz", kind="trajectory")


def found(store: InMemoryObjectStore, head: str | None = None) -> Trajectory | None:
    result = find_trajectory(store, PREFIX, head=head)
    return result.trajectory if result else None


def test_trajectory_is_found_with_the_reference_it_was_kept_under(
    store: InMemoryObjectStore,
) -> None:
    ref = stored(store, head="h")
    stored(store, prefix=f"{PREFIX}0")
    result = find_trajectory(store, PREFIX)
    assert result is not None
    assert (result.ref, result.trajectory.head) == (ref, "h")


def test_episode_that_was_not_graded_has_none(store: InMemoryObjectStore) -> None:
    assert find_trajectory(store, PREFIX) is None


def test_of_two_trajectories_everybody_finds_the_same(store: InMemoryObjectStore) -> None:
    keys = {stored(store, head=head).key: head for head in "abc"}
    result = found(store)
    assert result is not None
    assert result.head == keys[min(keys)]


def test_trajectory_of_one_chain_can_be_asked_for(store: InMemoryObjectStore) -> None:
    for head in "ab":
        stored(store, head=head)
    result = found(store, head="b")
    assert result is not None
    assert result.head == "b"
    assert found(store, head="c") is None


def test_damaged_trajectory_is_passed_over_for_a_whole_one(store: InMemoryObjectStore) -> None:
    refs = sorted((stored(store, head=head) for head in "ab"), key=lambda ref: ref.key)
    store.objects[refs[0].key] = b"damaged"
    result = find_trajectory(store, PREFIX)
    assert result is not None
    assert result.ref == refs[1]


def test_episode_whose_only_trajectory_is_damaged_is_not_taken_for_ungraded(
    store: InMemoryObjectStore,
) -> None:
    ref = stored(store)
    store.objects[ref.key] = b"damaged"
    with pytest.raises(ArtifactDamaged, match=f"trajectory {ref.key} is damaged; .* restore"):
        find_trajectory(store, PREFIX)


def test_trajectory_of_a_newer_version_is_refused_by_its_key(store: InMemoryObjectStore) -> None:
    ref = stored(store, schema_version=99)
    with pytest.raises(ContractError, match=f"{ref.key} cannot be read: .* schema 99.*; upgrade"):
        find_trajectory(store, PREFIX)


def test_trajectory_that_was_stored_without_head_and_grading_is_read() -> None:
    old = TRAJECTORY.model_dump(mode="json", exclude={"head", "grading"})
    assert Trajectory.model_validate(old) == TRAJECTORY
