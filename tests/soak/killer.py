"""Kills children of a platform, one every few seconds, in an order drawn from a seed."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from loopwright.embedded.info import ChildInfo, ChildState
from loopwright.embedded.processes import is_alive
from loopwright.embedded.stack import Stack


@dataclass
class Killer:
    """Kills for ever, every child as often as every other.

    None is killed that is still starting, and none while others are: a slow host that starts one
    more slowly than they are killed would do nothing else.
    """

    stack: Stack
    seed: int
    seconds_between: tuple[float, float]
    """Least and most."""
    max_down: int = 2
    """Children that may be down at one time."""
    num_kills: Counter[str] = field(default_factory=Counter)
    """By child."""

    async def run(self) -> None:
        """Kill until cancelled."""
        chance = random.Random(self.seed)
        victims: list[str] = []
        while True:
            await asyncio.sleep(chance.uniform(*self.seconds_between))
            victims = victims or _shuffled(chance, self._children())
            healthy = self._healthy()
            name = next((name for name in victims if name in healthy), None)
            if name is not None and len(self._children()) - len(healthy) < self.max_down:
                victims.remove(name)
                self._kill(name)

    def _healthy(self) -> set[str]:
        """Name the children that are up; a worker just killed counts until that is noticed."""
        found = self._children().items()
        return {name for name, child in found if child.state is ChildState.HEALTHY}

    def _kill(self, name: str) -> None:
        process = self._children()[name].process
        if process is not None and is_alive(process):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
                self.num_kills[name] += 1

    def _children(self) -> Mapping[str, ChildInfo]:
        info = self.stack.info()
        assert info is not None, "the platform is gone"
        return info.children


def _shuffled(chance: random.Random, names: Iterable[str]) -> list[str]:
    found = list(names)
    chance.shuffle(found)
    return found
