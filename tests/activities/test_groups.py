"""What groups leave in the store: their scores, and where they stand when they are parked."""

import pytest
from temporalio.testing import ActivityEnvironment

from loopwright.activities.control.load_parked import LoadParked
from loopwright.activities.control.park_group import ParkGroup
from loopwright.activities.control.score_group import ScoreGroup
from loopwright.adapters.artifacts import fetch
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.contracts.episodes import EpisodeResult
from loopwright.contracts.failures import ArtifactDamaged
from loopwright.contracts.groups import (
    GroupManifest,
    LoadParkedRequest,
    ParkedGroup,
    ParkGroupRequest,
    ScoreGroupRequest,
)
from loopwright.contracts.turns import StopReason, TurnHead
from tests.core.episodes import failed, graded
from tests.workflows.inputs import TASK, group_input

PARKED = EpisodeResult(
    index=1,
    status="parked",
    stop_reason=StopReason.PARKED,
    head=TurnHead(num_turns=2, digest="d2"),
)
REQUEST = ParkGroupRequest(group=group_input(), episodes=(graded(1.0), PARKED))


def test_parked_group_is_read_as_it_was_stored(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    ref = activity.run(ParkGroup(store).park_group, REQUEST)
    assert ref.key.startswith(f"{REQUEST.group.episode.prefix}/parked-")
    found = activity.run(LoadParked(store).load_parked, LoadParkedRequest(parked=ref))
    assert found == ParkedGroup(group=REQUEST.group, episodes=REQUEST.episodes)


def test_group_parked_twice_alike_is_one_artifact(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    park_group = ParkGroup(store).park_group
    assert activity.run(park_group, REQUEST) == activity.run(park_group, REQUEST)


def test_parked_group_that_is_gone_is_damaged(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    ref = activity.run(ParkGroup(store).park_group, REQUEST)
    empty = LoadParked(InMemoryObjectStore())
    with pytest.raises(ArtifactDamaged, match=r"parked-.* is not in the store"):
        activity.run(empty.load_parked, LoadParkedRequest(parked=ref))


def test_replaced_episode_stands_in_the_manifest_without_credit(
    activity: ActivityEnvironment, store: InMemoryObjectStore
) -> None:
    episodes = (graded(0.0), failed(), graded(1.0))
    request = ScoreGroupRequest(
        prefix="loop/x", task=TASK, advantage="dr_grpo", episodes=episodes, size=2
    )
    result = activity.run(ScoreGroup(store).score_group, request)
    assert (result.is_admitted, result.num_episodes, result.num_replaced) == (True, 3, 1)
    assert result.manifest is not None
    manifest = GroupManifest.model_validate_json(fetch(store, result.manifest))
    assert (manifest.episodes, manifest.size) == (episodes, 2)
    assert manifest.advantages == (-0.5, None, 0.5)
