"""How many completions an engine is asked for at once, from what it says of its load.

Too few leave it idle; too many fill its memory for keys and values, and then it throws away work
that it has begun. The rule is prime-rl's (``orchestrator/concurrency.py``): carefully up while
there is room, at once down when there is none. It cancels nothing: what is too much ends its turn,
and the episodes wait where no memory of the engine is held, in the order of their priority.

Several workers may share an engine without knowing of each other. Each cuts what is its own in
proportion, so together they give way as one would.
"""

import math
from dataclasses import dataclass

GROWTH = 1.25
ROOMY_USAGE = 0.6
"""Share of keys and values in use below which more may be asked for."""
FULL_USAGE = 0.8
"""Share above which less is asked for, ..."""
DANGEROUS_USAGE = 0.9
"""... and above which the pause after the last cut is not waited for."""
AIMED_USAGE = 0.7
"""Share that a cut aims at."""
MANY_WAITING = 0.5
"""Share of the running ones beyond which those that wait in the engine are too many."""
WAITING_CUT, PREEMPTION_CUT, REPEATED_PREEMPTION_CUT = 0.9, 0.8, 0.5
PAUSE_POLLS = 6
"""Polls for which a cut is given time to show, and for which a queue must last to be one."""
SIGHT_SECONDS = 15.0
"""How long a poll lets the limit grow: a blind worker keeps what it has."""
_USED_SHARE = 0.9
"""Of the limit, what must be in flight to tell that the limit is what holds it down."""


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What an engine says of itself; where it has several ranks, of all of them."""

    usage: float
    """Share of its memory for keys and values that is in use, 0 to 1; of the fullest rank."""
    num_running: int
    num_waiting: int
    """Requests in it that it has no room for."""
    num_preemptions: int
    """Requests it has ever thrown out to begin anew; starts at 0 with the engine."""
    capacity_tokens: int | None = None
    """Tokens whose keys and values it can hold; None where it does not say."""


class ConcurrencyController:
    """The limit of one engine; told of polls and completions, it has no clock of its own."""

    def __init__(self, max_concurrent: int) -> None:
        """Begin at ``max_concurrent``, which is never exceeded; the first poll says better."""
        self.limit = max_concurrent
        """Completions to ask for at once; at least 1."""
        self._max = max_concurrent
        self._turnover = 0.0
        self._may_grow_until = -math.inf
        self._has_seen = False
        self._num_preemptions = 0
        self._polls_with_queue = 0
        self._is_draining = False
        self._polls_since_drained = PAUSE_POLLS
        self._has_cut_for_preemptions = False

    def polled(
        self, load: EngineLoad, *, num_in_flight: int, longest_tokens: int, now: float
    ) -> None:
        """Take what the engine says.

        Args:
            load: of the engine.
            num_in_flight: completions asked for and not yet had.
            longest_tokens: most tokens, prompt included, that one of them may come to.
            now: seconds on a clock that never goes back.
        """
        num_preempted = self._newly_preempted(load)
        if not self._has_seen:
            self._has_seen = True
            self._start(load, longest_tokens)
        has_queue = load.num_waiting > MANY_WAITING * load.num_running
        self._polls_with_queue = self._polls_with_queue + 1 if has_queue else 0
        self._note_drained(num_in_flight)
        cut = self._cut(load, num_preempted, num_in_flight)
        if cut < self.limit:
            self._shrink(cut, is_for_preemptions=num_preempted > 0, num_in_flight=num_in_flight)
        is_roomy = load.usage < ROOMY_USAGE and load.num_waiting == 0 and num_preempted == 0
        self._may_grow_until = now + SIGHT_SECONDS if is_roomy else -math.inf

    def completed(self, *, num_in_flight: int, now: float) -> None:
        """Take that a completion has ended; ``num_in_flight`` still counts it."""
        self._turnover += 1 / max(num_in_flight, 1)
        if self._turnover < 1:
            return
        self._turnover -= 1
        if now <= self._may_grow_until and num_in_flight >= _USED_SHARE * self.limit:
            self.limit = min(self._max, math.ceil(self.limit * GROWTH))

    def _newly_preempted(self, load: EngineLoad) -> int:
        """Count preemptions since the last poll; those before the first were not ours to avoid."""
        before, self._num_preemptions = self._num_preemptions, load.num_preemptions
        return max(0, load.num_preemptions - before) if self._has_seen else 0

    def _start(self, load: EngineLoad, longest_tokens: int) -> None:
        """Ask at first for what is sure to fit."""
        if load.capacity_tokens:
            fitting = load.capacity_tokens // max(longest_tokens, 1)
            self.limit = min(self._max, max(1, fitting))

    def _note_drained(self, num_in_flight: int) -> None:
        """Notice when what was in flight beyond the last cut has ended."""
        if self._is_draining and num_in_flight <= self.limit:
            self._is_draining = False
            self._polls_since_drained = 0
        elif not self._is_draining:
            self._polls_since_drained += 1

    def _cut(self, load: EngineLoad, num_preempted: int, num_in_flight: int) -> float:
        """Give the limit that the load calls for; infinity where it calls for none.

        While the last cut drains, the load is not yet what the limit makes of it.
        """
        if self._is_draining or not num_in_flight:
            return math.inf
        has_settled = self._polls_since_drained >= 1
        has_paused = self._polls_since_drained >= PAUSE_POLLS
        if num_preempted:
            is_repeated = self._has_cut_for_preemptions and not has_paused
            return num_in_flight * (REPEATED_PREEMPTION_CUT if is_repeated else PREEMPTION_CUT)
        most = FULL_USAGE if has_paused else DANGEROUS_USAGE
        if load.usage > most and has_settled:
            num_inside = load.num_running + load.num_waiting
            share_running = load.num_running / num_inside if load.num_running else 1.0
            return num_in_flight * share_running * AIMED_USAGE / load.usage
        if self._polls_with_queue >= PAUSE_POLLS and has_paused:
            return num_in_flight * WAITING_CUT
        return math.inf

    def _shrink(self, cut: float, *, is_for_preemptions: bool, num_in_flight: int) -> None:
        self.limit = max(1, math.floor(cut))
        self._turnover = 0.0
        self._polls_with_queue = 0
        self._has_cut_for_preemptions = is_for_preemptions
        self._is_draining = num_in_flight > self.limit
        self._polls_since_drained = 0
