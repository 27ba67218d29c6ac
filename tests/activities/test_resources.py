"""What the activities of an episode share: which records are its own."""

from typing import Any

import pytest

from loopwright.activities.episode.resources import fingerprint
from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.episodes import EpisodeInput, Priority
from tests.workflows.inputs import episode_input

STEPS = EnvironmentConfig(id="program_steps")


def episode_with(**changes: Any) -> EpisodeInput:
    return episode_input().model_copy(update={"environment": STEPS, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"priority": Priority(key=1, fairness_key="k", fairness_weight=2)},
        {"environment": STEPS.model_copy(update={"weight": 9.0})},
        {"environment": STEPS.model_copy(update={"fairness_weight": 9.0})},
        {"environment": STEPS.model_copy(update={"max_concurrent": 9})},
    ],
)
def test_when_and_where_an_episode_is_played_does_not_change_whose_its_records_are(
    changes: dict[str, Any],
) -> None:
    assert fingerprint(episode_with(**changes)) == fingerprint(episode_with())


@pytest.mark.parametrize(
    "changes", [{"seed": 99}, {"environment": STEPS.model_copy(update={"options": {"a": 1}})}]
)
def test_what_an_episode_is_made_of_does(changes: dict[str, Any]) -> None:
    assert fingerprint(episode_with(**changes)) != fingerprint(episode_with())
