"""An engine that only counts: requests grow by a token a step, and are thrown out when full."""

import random
from collections import deque
from dataclasses import dataclass, field

from loopwright.core.concurrency import EngineLoad


@dataclass
class Request:
    prompt_tokens: int
    wanted_tokens: int
    worker: int
    """Which of several workers asked for it."""
    num_sampled: int = 0

    @property
    def num_tokens(self) -> int:
        return self.prompt_tokens + self.num_sampled


@dataclass
class SimulatedEngine:
    """Keeps ``capacity`` tokens; the youngest is thrown out for want of room, and begins anew."""

    capacity: int
    max_running: int = 10_000
    num_preemptions: int = 0
    num_sampled: int = 0
    """Tokens of completions that ended."""
    running: list[Request] = field(default_factory=list)
    waiting: deque[Request] = field(default_factory=deque)

    def num_in_flight(self, worker: int) -> int:
        return sum(each.worker == worker for each in (*self.running, *self.waiting))

    @property
    def num_kept(self) -> int:
        return sum(request.num_tokens for request in self.running)

    def step(self) -> list[Request]:
        """Sample a token for each running request; give those that ended."""
        self._admit()
        for request in self.running:
            request.num_sampled += 1
        while self.num_kept > self.capacity:
            thrown_out = self.running.pop()
            thrown_out.num_sampled = 0
            self.waiting.appendleft(thrown_out)
            self.num_preemptions += 1
        ended = [each for each in self.running if each.num_sampled >= each.wanted_tokens]
        self.running = [each for each in self.running if each.num_sampled < each.wanted_tokens]
        self.num_sampled += sum(each.num_sampled for each in ended)
        return ended

    def load(self) -> EngineLoad:
        return EngineLoad(
            usage=self.num_kept / self.capacity,
            num_running=len(self.running),
            num_waiting=len(self.waiting),
            num_preemptions=self.num_preemptions,
            capacity_tokens=self.capacity,
        )

    def _admit(self) -> None:
        while (
            self.waiting
            and len(self.running) < self.max_running
            and self.num_kept + self.waiting[0].num_tokens < self.capacity
        ):
            self.running.append(self.waiting.popleft())


@dataclass
class RequestSource:
    """Requests of one prompt length, whose completions differ tenfold in length."""

    prompt: int
    most_sampled: int
    seed: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def next(self, worker: int) -> Request:
        least = max(1, self.most_sampled // 10)
        return Request(self.prompt, self._random.randint(least, self.most_sampled), worker)

    @property
    def longest_tokens(self) -> int:
        return self.prompt + self.most_sampled
