"""control.score_group: a group's rewards become advantages."""

from temporalio import activity

from loopwright.adapters.artifacts import keep
from loopwright.contracts.groups import GroupManifest, GroupResult, ScoreGroupRequest
from loopwright.core import admission, advantages, summaries
from loopwright.core.protocols import ObjectStore


class ScoreGroup:
    """Scores the finished episodes of a group together and stores the group's manifest."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="control.score_group")
    def score_group(self, request: ScoreGroupRequest) -> GroupResult:
        """Compute advantages and admission; the same request gives the same manifest."""
        size = request.size or len(request.episodes)
        rewards = [episode.reward for episode in request.episodes]
        manifest = GroupManifest(
            task=request.task,
            episodes=request.episodes,
            advantages=tuple(advantages.of_group(rewards, request.advantage)),
            size=size,
        )
        ref = keep(
            self._store,
            manifest.model_dump_json().encode(),
            prefix=request.prefix,
            name="group",
            suffix=".json",
            kind="group",
        )
        return summaries.of_group(
            request.task,
            request.episodes,
            size=size,
            admission=admission.decide(request.episodes, size=size),
            manifest=ref,
        )
