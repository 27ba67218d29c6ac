"""control.score_group: a group's rewards become advantages."""

from temporalio import activity

from loopwright.adapters.artifacts import keep
from loopwright.contracts.episodes import EpisodeResult, Verdict
from loopwright.contracts.groups import GroupManifest, GroupResult, ScoreGroupRequest
from loopwright.core import admission, advantages
from loopwright.core.protocols import ObjectStore


class ScoreGroup:
    """Scores the finished episodes of a group together and stores the group's manifest."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="control.score_group")
    def score_group(self, request: ScoreGroupRequest) -> GroupResult:
        """Compute advantages and admission; the same request gives the same manifest."""
        rewards = [episode.reward for episode in request.episodes]
        manifest = GroupManifest(
            task=request.task,
            episodes=request.episodes,
            advantages=tuple(advantages.of_group(rewards, request.advantage)),
        )
        ref = keep(
            self._store,
            manifest.model_dump_json().encode(),
            prefix=request.prefix,
            name="group",
            suffix=".json",
            kind="group",
        )
        valid = [episode for episode in request.episodes if episode.reward is not None]
        reason = admission.refusal(rewards)
        return GroupResult(
            task=request.task,
            num_episodes=len(request.episodes),
            num_valid=len(valid),
            num_passed=sum(episode.verdict == Verdict.PASS for episode in valid),
            num_first_passed=sum(episode.first_answer_passed for episode in valid),
            mean_reward=_mean_reward(valid),
            num_completion_tokens=sum(e.num_completion_tokens for e in request.episodes),
            is_admitted=not reason,
            reason=reason,
            manifest=ref,
        )


def _mean_reward(valid: list[EpisodeResult]) -> float | None:
    rewards = [episode.reward for episode in valid if episode.reward is not None]
    return sum(rewards) / len(rewards) if rewards else None
