import hashlib

import pytest

from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.contracts.failures import ArtifactDamaged
from loopwright.contracts.turns import TurnHead, TurnRecord
from loopwright.trajectories.turn_log import START, TurnLog
from tests.trajectories.records import record

PREFIX = "loop/a/u/iteration/000001/task/t/episode/0"


@pytest.fixture
def store() -> InMemoryObjectStore:
    return InMemoryObjectStore()


@pytest.fixture
def log(store: InMemoryObjectStore) -> TurnLog:
    return TurnLog(store, PREFIX, "f")


def chain_of(log: TurnLog, count: int, *, start: TurnHead = START, tag: int = 0) -> list[TurnHead]:
    heads = [start]
    for _ in range(count):
        head = heads[-1]
        heads.append(
            log.commit(record(head.num_turns, parent=head.digest, completion=(tag, head.num_turns)))
        )
    return heads[1:]


def test_committed_turns_come_back_in_order(log: TurnLog) -> None:
    heads = chain_of(log, 3)
    chain = log.load(heads[-1])
    assert [r.index for r in chain.records] == [0, 1, 2]
    assert chain.head == heads[-1]


def test_new_attempt_goes_on_from_the_deepest_turn(log: TurnLog) -> None:
    heads = chain_of(log, 3)
    assert log.deepest().head == heads[-1]
    assert log.deepest(heads[0]).head == heads[-1]


def test_log_without_turns_begins_at_the_start(log: TurnLog) -> None:
    assert log.deepest().head == START
    assert log.deepest().records == ()


def test_committing_twice_is_one_turn(log: TurnLog, store: InMemoryObjectStore) -> None:
    assert chain_of(log, 1) == chain_of(log, 1)
    assert len(store.objects) == 1


def test_of_two_branches_every_attempt_takes_the_same(log: TurnLog) -> None:
    one, other = chain_of(log, 2, tag=1), chain_of(log, 2, tag=2)
    assert log.deepest().head.digest == min(one[-1].digest, other[-1].digest)


def test_longer_branch_wins_over_a_shorter_one(log: TurnLog) -> None:
    chain_of(log, 1, tag=1)
    long = chain_of(log, 3, tag=2)
    assert log.deepest().head == long[-1]


def test_branch_that_does_not_descend_from_the_head_is_left_alone(log: TurnLog) -> None:
    head = chain_of(log, 1, tag=1)[-1]
    chain_of(log, 3, tag=2)
    assert log.deepest(head).head == head


def test_turns_of_another_request_are_not_found(log: TurnLog, store: InMemoryObjectStore) -> None:
    chain_of(log, 2)
    assert TurnLog(store, PREFIX, "other").deepest().head == START


def test_turns_of_a_sibling_episode_are_not_found(store: InMemoryObjectStore) -> None:
    chain_of(TurnLog(store, PREFIX + "0", "f"), 1)
    assert TurnLog(store, PREFIX, "f").deepest().head == START


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x00" * 10])
def test_damaged_turn_counts_as_not_taken(
    log: TurnLog, store: InMemoryObjectStore, damage: bytes
) -> None:
    heads = chain_of(log, 2)
    key = next(key for key in store.objects if heads[1].digest in key)
    store.objects[key] = damage
    assert log.deepest().head == heads[0]
    with pytest.raises(ArtifactDamaged, match=f"turn record {key} is damaged, .* restore this"):
        log.load(heads[1])


def test_head_that_was_lost_is_an_error_and_no_fresh_start(log: TurnLog) -> None:
    lost = f"turn record {'0' * 64} of {PREFIX} is not in the store; .* restore this"
    with pytest.raises(ArtifactDamaged, match=lost):
        log.deepest(TurnHead(num_turns=1, digest="0" * 64))


def test_record_of_another_schema_is_passed_over(log: TurnLog, store: InMemoryObjectStore) -> None:
    data = record().model_dump_json().replace('"index":0', '"index":0,"new":1').encode()
    digest = hashlib.sha256(data).hexdigest()
    store.put(f"{PREFIX}/turn/0000-root-{digest}.json", data)
    assert log.deepest().head == START


def test_record_keeps_state_and_logprobs_exactly(log: TurnLog) -> None:
    state = {"answer": "a\x00é", "nested": [1, 2.5, None, {"k": True}]}
    made = record(state=state, behaviour_logprobs=(-0.1234567890123, -1e-9))
    found: TurnRecord = log.load(log.commit(made)).records[0]
    assert found == made


def test_log_of_any_request_reads_the_deepest_chain_of_one(
    log: TurnLog, store: InMemoryObjectStore
) -> None:
    head = chain_of(log, 2)[-1]
    other = record(2, parent=head.digest, fingerprint="other")
    TurnLog(store, PREFIX, "other").commit(other)
    assert TurnLog(store, PREFIX, None).deepest().head == head
