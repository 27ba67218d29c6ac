"""An episode is found in the store with the turns that were graded."""

import pytest

from loopwright.adapters.artifacts import keep
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.cli.recorded_episode import RecordedEpisode, find_episode, read_episode_name
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.failures import ArtifactDamaged, UserError
from loopwright.contracts.turns import TurnHead
from loopwright.trajectories import codec
from loopwright.trajectories.turn_log import START, TurnLog
from tests.trajectories.records import record
from tests.trajectories.test_codec import TRAJECTORY

EPISODE = "iteration/000001/task/program_steps.t/episode/0"
PREFIX = f"loop/a/0123456789ab/{EPISODE}"


@pytest.fixture
def store() -> InMemoryObjectStore:
    return InMemoryObjectStore()


def commit(
    store: InMemoryObjectStore, count: int, *, parent: TurnHead = START, tag: int = 0
) -> TurnHead:
    log, head = TurnLog(store, PREFIX, "f"), parent
    for _ in range(count):
        made = record(head.num_turns, parent=head.digest, completion=(tag,))
        head = log.commit(made)
    return head


def grade(store: InMemoryObjectStore, head: TurnHead) -> ArtifactRef:
    changes = {"head": head.digest, "turn_rewards": (0.0,) * head.num_turns}
    data = codec.encode(TRAJECTORY.model_copy(update=changes))
    return keep(store, data, prefix=PREFIX, name="trajectory", suffix=".json.gz", kind="trajectory")


def find(store: InMemoryObjectStore) -> RecordedEpisode:
    return find_episode(store, read_episode_name(f"loop/a/{EPISODE}"))


def key_of(store: InMemoryObjectStore, head: TurnHead) -> str:
    return next(key for key in store.objects if f"{head.digest}.json" in key)


@pytest.mark.parametrize("num_more", [1, 3])
def test_turns_are_those_that_were_graded_whatever_a_lost_attempt_committed(
    store: InMemoryObjectStore, num_more: int
) -> None:
    fork = commit(store, 1)
    head = commit(store, 1, parent=fork, tag=1)
    commit(store, num_more, parent=fork, tag=2)
    commit(store, num_more, parent=head, tag=3)
    grade(store, head)
    found = find(store)
    assert found.is_graded
    assert [turn.completion_ids for turn in found.turns] == [(0,), (1,)]


def test_turns_before_the_grading_are_those_that_a_new_attempt_goes_on_from(
    store: InMemoryObjectStore,
) -> None:
    commit(store, 1, tag=1)
    commit(store, 2, tag=2)
    found = find(store)
    assert not found.is_graded
    assert [turn.completion_ids for turn in found.turns] == [(2,), (2,)]


def test_graded_turn_that_is_gone_is_named_with_what_to_do(store: InMemoryObjectStore) -> None:
    head = commit(store, 2)
    grade(store, head)
    store.delete([key_of(store, head)])
    expected = f"turn record {head.digest} of {PREFIX} is not in the store; .* restore"
    with pytest.raises(ArtifactDamaged, match=expected):
        find(store)


def test_graded_turn_that_is_damaged_is_named_with_what_to_do(store: InMemoryObjectStore) -> None:
    first = commit(store, 1)
    grade(store, commit(store, 1, parent=first))
    store.objects[key_of(store, first)] = b"damaged"
    with pytest.raises(ArtifactDamaged, match=f"{key_of(store, first)} is damaged, .* restore"):
        find(store)


def test_damaged_trajectory_is_named_with_what_to_do(store: InMemoryObjectStore) -> None:
    ref = grade(store, commit(store, 1))
    store.objects[ref.key] = b"damaged"
    with pytest.raises(ArtifactDamaged, match=f"trajectory {ref.key} is damaged; .* restore"):
        find(store)


def test_episode_of_which_every_turn_is_damaged_is_not_one_without_turns(
    store: InMemoryObjectStore,
) -> None:
    store.objects[key_of(store, commit(store, 1))] = b"damaged"
    with pytest.raises(ArtifactDamaged, match=f"no turn of {PREFIX} is as it was written; .* rest"):
        find(store)


def test_episode_that_is_unknown_or_in_its_first_turn_is_said_so(
    store: InMemoryObjectStore,
) -> None:
    store.put(f"{PREFIX}0/turn/0000-root-{'0' * 64}.json", b"of another")
    with pytest.raises(UserError, match=r"no turn of an episode loop/a/.* first turn has none yet"):
        find(store)
