"""episode.take_turns: resume from the log; generate, act, commit, until a stop."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio import activity

from loopwright.activities.episode.recording_jail import RecordingJail
from loopwright.activities.episode.renderers import RendererCache
from loopwright.activities.episode.resources import (
    EpisodeResources,
    environment_errors,
    environment_of,
    fingerprint,
)
from loopwright.activities.episode.resting import Rest
from loopwright.activities.heartbeats import heartbeating
from loopwright.contracts.commands import CommandRecord
from loopwright.contracts.engines import Completion, GenerateRequest
from loopwright.contracts.episodes import EpisodeInput, TakeTurnsRequest, TakeTurnsResult
from loopwright.contracts.failures import TaskError
from loopwright.contracts.tasks import Task
from loopwright.contracts.turns import StopReason, TurnHead, TurnRecord
from loopwright.contracts.workspaces import Workspace
from loopwright.core import budgets, seeds
from loopwright.core.protocols import Jail
from loopwright.environments.base import Environment, Reply
from loopwright.trajectories.assembly import policy_span
from loopwright.trajectories.rendering import Renderer
from loopwright.trajectories.turn_log import Chain, TurnLog


class TakeTurns:
    """Takes the turns of episodes, each committed to the store before the next begins."""

    def __init__(self, resources: EpisodeResources, renderers: RendererCache) -> None:
        self._resources = resources
        self._renderers = renderers

    @activity.defn(name="episode.take_turns")
    async def take_turns(self, request: TakeTurnsRequest) -> TakeTurnsResult:
        """Go on from the deepest committed turn that descends from the request's head.

        Idempotent: a repeated request finds the turns of the one before it and takes only what
        is missing. Ends after the turn it is at, but with one more than the request knew of, when
        its worker stops or its workflow parks.
        """
        async with heartbeating(), self._resources.place_of(request.episode):
            player, rest = await self._player(request), Rest()
            for _ in range(request.max_turns):
                if player.is_over() or (rest.is_due() and player.is_beyond(request.head)):
                    break
                await rest.after(player.take_turn())
            self._resources.chains.put(player.chain())
            return player.result()

    async def _player(self, request: TakeTurnsRequest) -> "_Player":
        episode = request.episode
        renderer = await self._resources.in_store_thread(self._renderers.get, episode.checkpoint)
        environment = environment_of(episode)
        log = self._resources.turn_log(episode)
        chain = await self._resources.in_store_thread(log.deepest, request.head)
        return _Player(
            resources=self._resources,
            renderer=renderer,
            environment=environment,
            task=environment.load_task(episode.task.task_id),
            episode=episode,
            log=log,
            records=list(chain.records),
            head=chain.head,
        )


@dataclass
class _Player:
    """One episode while this attempt plays it."""

    resources: EpisodeResources
    renderer: Renderer
    environment: Environment
    task: Task
    episode: EpisodeInput
    log: TurnLog
    records: list[TurnRecord]
    head: TurnHead
    stop_reason: StopReason | None = None

    def is_over(self) -> bool:
        """Tell whether the episode has stopped, or may take no further turn."""
        if self.records and self.records[-1].stop_reason is not None:
            self.stop_reason = self.records[-1].stop_reason
        else:
            self.stop_reason = budgets.stop_before_turn(
                prompt_tokens=len(self._prompt()),
                seconds_spent=sum(record.seconds for record in self.records),
                sampling=self.episode.sampling,
                budgets=self.episode.budgets,
            )
            self._refuse_to_end_unbegun()
        return self.stop_reason is not None

    def is_beyond(self, head: TurnHead) -> bool:
        """Tell whether there are more turns than those that lead to ``head``."""
        return self.head.num_turns > head.num_turns

    def _refuse_to_end_unbegun(self) -> None:
        """Refuse an episode that has no room for a turn: nothing the policy did is there to grade.

        Raises:
            TaskError: its opening leaves no token for a completion.
        """
        if self.stop_reason is not None and not self.records:
            raise TaskError(
                f"task {self.task.task_id} opens with {len(self._prompt())} tokens, which leaves "
                f"none for a completion; raise episode.max_tokens "
                f"({self.episode.budgets.max_tokens}) or leave the task out"
            )

    async def take_turn(self) -> None:
        """Generate, let the environment reply, and commit the record of both."""
        started = time.monotonic()
        prompt = self._prompt()
        completion = await self._generate(prompt)
        jail = RecordingJail(self.resources.jail)
        reply = await self.resources.in_jail_thread(self._reply, completion, jail)
        # What it waited for the engine is not the episode's doing.
        seconds = max(0.0, time.monotonic() - started - completion.waited_seconds)
        record = self._record(prompt, completion, reply, jail.commands, seconds=seconds)
        workspaces = (*jail.workspaces, reply.workspace)
        self.head = await self.resources.in_store_thread(self._commit, record, workspaces)
        self.records.append(record)
        self.stop_reason = record.stop_reason

    def chain(self) -> Chain:
        """Give the turns taken so far."""
        return Chain(records=tuple(self.records), head=self.head)

    def result(self) -> TakeTurnsResult:
        """Say where the episode stands."""
        return TakeTurnsResult(
            head=self.head,
            stop_reason=self.stop_reason,
            num_completion_tokens=sum(len(record.completion_ids) for record in self.records),
            policy_span=policy_span(self.records),
        )

    def _prompt(self) -> tuple[int, ...]:
        """Extend the tokens so far; what the policy sampled is never tokenised again."""
        if not self.records:
            return self.renderer.opening(self.environment.pose(self.task).messages)
        last = self.records[-1]
        new = self.renderer.continuation(last.messages)
        return (*last.prompt_ids, *last.completion_ids, *new)

    async def _generate(self, prompt: Sequence[int]) -> Completion:
        episode = self.episode
        return await self.resources.engine(episode.engine).generate(
            GenerateRequest(
                token_ids=tuple(prompt),
                policy=episode.policy,
                may_be_newer=episode.may_be_newer,
                sampling=episode.sampling,
                max_tokens=budgets.completion_tokens(
                    len(prompt), sampling=episode.sampling, budgets=episode.budgets
                ),
                stop_token_ids=self.renderer.stop_token_ids,
                seed=seeds.derive(episode.seed, len(self.records)),
                priority_key=episode.priority.key,
            )
        )

    def _reply(self, completion: Completion, jail: Jail) -> Reply:
        """Ask the environment, unless the completion was cut: half an answer is none."""
        state = self._state()
        if completion.finish_reason == "length":
            return Reply(state=state)
        with environment_errors(self.environment):
            return self.environment.reply(
                self.task,
                state,
                self.renderer.decode(completion.token_ids),
                jail=jail,
                limits=self.episode.budgets.limits,
            )

    def _commit(self, record: TurnRecord, workspaces: Sequence[Workspace | None]) -> TurnHead:
        """Store the workspaces first: a record names none that cannot be had."""
        for workspace in workspaces:
            if workspace is not None:
                self.resources.workspaces.keep(workspace)
        return self.log.commit(record)

    def _state(self) -> dict[str, object]:
        if self.records:
            return self.records[-1].state
        return self.environment.pose(self.task).state

    def _record(
        self,
        prompt: tuple[int, ...],
        completion: Completion,
        reply: Reply,
        commands: tuple[CommandRecord, ...],
        *,
        seconds: float,
    ) -> TurnRecord:
        stop_reason = budgets.stop_after_turn(
            num_turns=len(self.records) + 1,
            finish_reason=completion.finish_reason,
            asked=reply.stop_reason,
            budgets=self.episode.budgets,
        )
        return TurnRecord(
            index=len(self.records),
            parent=self.head.digest,
            fingerprint=fingerprint(self.episode),
            prompt_ids=prompt,
            completion_ids=completion.token_ids,
            behaviour_logprobs=completion.behaviour_logprobs,
            version_spans=completion.version_spans,
            finish_reason=completion.finish_reason,
            messages=() if stop_reason else reply.messages,
            state=reply.state,
            workspace=reply.workspace.digest if reply.workspace is not None else None,
            commands=commands,
            turn_reward=reply.turn_reward,
            seconds=round(seconds, 6),
            stop_reason=stop_reason,
        )
