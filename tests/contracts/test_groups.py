"""What a group tells of its episodes stays a small payload, however many they are."""

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.episodes import Component, EpisodeResult, Verdict
from loopwright.contracts.groups import ParkGroupRequest, ScoreGroupRequest
from loopwright.contracts.policies import PolicySpan
from loopwright.contracts.turns import StopReason
from tests.workflows.inputs import TASK, group_input

LARGEST_BYTES = 64 * 1024
NUM_EPISODES = 64 + 8 + 1
"""Of the largest group, with all replacements that a configuration can allow."""
PREFIX = f"loop/{'l' * 64}/0123456789ab/iteration/099999/task/program_steps.{'t' * 80}"
LONG = 0.12345678901234567


def episode(index: int) -> EpisodeResult:
    return EpisodeResult(
        index=index,
        status="truncated",
        stop_reason=StopReason.MAX_TOKENS,
        verdict=Verdict.OUTPUT_LIMIT,
        reward=LONG,
        components=dict.fromkeys(("cases", "style"), Component(score=LONG, weight=LONG)),
        num_turns=200,
        num_completion_tokens=99_999,
        policy_span=PolicySpan(oldest=99_998, newest=99_999),
        trajectory=ArtifactRef(
            key=f"{PREFIX}/episode/{index}/trajectory-{'0' * 32}.json.gz",
            sha256="0" * 64,
            num_bytes=9_999_999,
            kind="trajectory",
        ),
    )


def test_episodes_of_the_largest_group_are_a_small_payload() -> None:
    episodes = tuple(episode(index) for index in range(NUM_EPISODES))
    score = ScoreGroupRequest(
        prefix=PREFIX, task=TASK, advantage="grpo", episodes=episodes, size=64
    )
    park = ParkGroupRequest(group=group_input(size=64), episodes=episodes)
    for request in (score, park):
        assert 0.5 * LARGEST_BYTES < len(request.model_dump_json()) < LARGEST_BYTES
