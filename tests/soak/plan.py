"""How large a soak is, and what happens in it."""

from dataclasses import dataclass

from benchmarks.scripted.environment import LedgerOptions
from benchmarks.scripted.platform import ScriptedOptions
from benchmarks.scripted.running import ledger_config
from loopwright.contracts.configs import IterationConfig, LoopConfig, TrainConfig


@dataclass(frozen=True, slots=True)
class SoakPlan:
    """One soak."""

    num_iterations: int
    num_groups: int
    """Of an iteration."""
    cut_seconds: float
    """Time for which the network is cut once."""
    seconds_before_cut: float = 10.0
    """Time from the first fault to that."""
    group_size: int = 8
    num_turns: int = 3
    num_episode_workers: int = 2
    max_episodes: int = 24
    """Episode activities at once of each worker."""
    latency_seconds: float = 0.2
    """Time that a completion takes."""
    seconds_between_kills: tuple[float, float] = (2.0, 5.0)
    """Least and most."""
    store_faults: float = 0.03
    """Part of the requests to the store that a fault happens to."""

    @property
    def num_episodes(self) -> int:
        """Episodes of the whole soak."""
        return self.num_iterations * self.num_groups * self.group_size

    @property
    def num_in_flight(self) -> int:
        """Most turns under way at one time."""
        return self.num_episode_workers * self.max_episodes

    def options(self) -> ScriptedOptions:
        """Say what the platform is made of."""
        return ScriptedOptions(
            num_episode_workers=self.num_episode_workers,
            max_episodes=self.max_episodes,
            latency_seconds=self.latency_seconds,
        )

    def config(self) -> LoopConfig:
        """Make the loop: staleness 0, no cut-off, no replacement.

        The scripted engine's logprobs are not the policy's, so no mismatch is refused.
        """
        environment = LedgerOptions(num_turns=self.num_turns, uses_jail=True)
        return ledger_config(environment).model_copy(
            update={
                "iteration": IterationConfig(
                    num_tasks=self.num_groups, group_size=self.group_size, max_replacements=0
                ),
                "train": TrainConfig(num_minibatches=1, max_mismatch=1e6),
                "num_iterations": self.num_iterations,
            }
        )


FULL = SoakPlan(num_iterations=10, num_groups=25, cut_seconds=12.0)
SHORT = SoakPlan(num_iterations=2, num_groups=13, cut_seconds=6.0)
