"""What episodes are compared with: the least workflow, and no workflow at all."""

from collections.abc import Sequence
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from loopwright.contracts.engines import GenerateRequest
    from loopwright.contracts.episodes import (
        EpisodeInput,
        Grade,
        GradeEpisodeRequest,
        GradeEpisodeResult,
        TakeTurnsRequest,
        TakeTurnsResult,
    )
    from loopwright.contracts.turns import TurnHead
    from loopwright.core import budgets, seeds
    from loopwright.core.protocols import Engine, Jail
    from loopwright.environments.base import Environment
    from loopwright.trajectories.rendering import Renderer

HAND_WRITTEN = "HandWritten"


@workflow.defn(name=HAND_WRITTEN)
class HandWrittenWorkflow:
    """Calls an episode's activities one after another, and keeps no account of anything."""

    @workflow.run
    async def run(self, episode: EpisodeInput) -> GradeEpisodeResult:
        """Take turns until a stop, then grade."""
        head, stop_reason = TurnHead(num_turns=0, digest=""), None
        while stop_reason is None:
            turns = await workflow.execute_activity(
                "episode.take_turns",
                TakeTurnsRequest(
                    episode=episode, head=head, max_turns=episode.budgets.turns_per_activity
                ),
                result_type=TakeTurnsResult,
                start_to_close_timeout=timedelta(minutes=30),
                heartbeat_timeout=timedelta(seconds=20),
            )
            head, stop_reason = turns.head, turns.stop_reason
        graded: GradeEpisodeResult = await workflow.execute_activity(
            "episode.grade_episode",
            GradeEpisodeRequest(episode=episode, head=head, stop_reason=stop_reason),
            result_type=GradeEpisodeResult,
            start_to_close_timeout=timedelta(minutes=10),
            heartbeat_timeout=timedelta(seconds=20),
        )
        return graded


async def play(
    episode: EpisodeInput,
    *,
    renderer: Renderer,
    environment: Environment,
    engine: Engine,
    jail: Jail,
) -> Grade:
    """Play an episode without workflow, store or record: what a crash takes is gone."""
    task = environment.load_task(episode.task.task_id)
    pose = environment.pose(task)
    state, prompt = pose.state, renderer.opening(pose.messages)
    limits, stop_reason, num_turns = episode.budgets.limits, None, 0
    while stop_reason is None:
        completion = await engine.generate(_request(episode, renderer, prompt, num_turns))
        num_turns += 1
        text = renderer.decode(completion.token_ids)
        reply = environment.reply(task, state, text, jail=jail, limits=limits)
        state = reply.state
        stop_reason = budgets.stop_after_turn(
            num_turns=num_turns,
            finish_reason=completion.finish_reason,
            asked=reply.stop_reason,
            budgets=episode.budgets,
        )
        if stop_reason is None:
            prompt = (*prompt, *completion.token_ids, *renderer.continuation(reply.messages))
    return environment.grade(task, state, jail=jail, limits=limits)


def _request(
    episode: EpisodeInput, renderer: Renderer, prompt: Sequence[int], num_turns: int
) -> GenerateRequest:
    return GenerateRequest(
        token_ids=tuple(prompt),
        policy=episode.policy,
        sampling=episode.sampling,
        max_tokens=budgets.completion_tokens(
            len(prompt), sampling=episode.sampling, budgets=episode.budgets
        ),
        stop_token_ids=renderer.stop_token_ids,
        seed=seeds.derive(episode.seed, num_turns),
    )
