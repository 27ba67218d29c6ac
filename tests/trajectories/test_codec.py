import gzip
import json

import pytest

from loopwright.contracts.episodes import Component, Verdict
from loopwright.contracts.failures import ContractError
from loopwright.contracts.policies import PolicyVersion
from loopwright.contracts.tasks import TaskRef
from loopwright.contracts.turns import StopReason
from loopwright.trajectories import codec
from loopwright.trajectories.assembly import assemble_samples
from loopwright.trajectories.trajectory import Trajectory
from tests.trajectories.records import record

TRAJECTORY = Trajectory(
    episode="loop/a/u/iteration/000001/task/t/episode/0",
    kind="training",
    task=TaskRef(environment="e", task_id="t"),
    policy=PolicyVersion(policy_id="p", version=3),
    samples=assemble_samples([record()]),
    turn_rewards=(0.0,),
    stop_reason=StopReason.COMPLETED,
    verdict=Verdict.PASS,
    reward=0.95,
    components={"cases": Component(score=1.0, weight=0.5)},
    workspace=None,
    grader="g",
)


def test_trajectory_is_the_same_after_a_round_trip() -> None:
    assert codec.decode(codec.encode(TRAJECTORY)) == TRAJECTORY


def test_equal_trajectories_give_equal_bytes() -> None:
    assert codec.encode(TRAJECTORY) == codec.encode(TRAJECTORY.model_copy(deep=True))


@pytest.mark.parametrize(
    "data", [b"", b"no gzip", gzip.compress(b"no json"), gzip.compress(b"[]"), gzip.compress(b"{}")]
)
def test_bytes_that_are_no_trajectory_are_refused(data: bytes) -> None:
    with pytest.raises(ContractError, match="not a trajectory"):
        codec.decode(data)


def test_newer_schema_is_refused_by_its_number() -> None:
    values = json.loads(gzip.decompress(codec.encode(TRAJECTORY)))
    data = gzip.compress(json.dumps(values | {"schema_version": 99}).encode())
    with pytest.raises(ContractError, match="schema 99"):
        codec.decode(data)


def test_what_is_wrong_with_a_trajectory_is_said_in_words() -> None:
    values = json.loads(gzip.decompress(codec.encode(TRAJECTORY)))
    data = gzip.compress(json.dumps(values | {"later": 1, "reward": "much"}).encode())
    with pytest.raises(ContractError) as refused:
        codec.decode(data)
    assert str(refused.value) == (
        "not a trajectory: reward: expected a valid number, got 'much'; later: unknown"
    )


def test_number_that_is_not_finite_is_never_stored() -> None:
    broken = TRAJECTORY.model_copy(update={"reward": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        codec.encode(broken)
