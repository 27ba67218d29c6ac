"""What episodes are sampled from: the seed of the configuration, not the run."""

from temporalio.client import Client

from loopwright.contracts.configs import EvaluationConfig, LoopConfig
from loopwright.contracts.episodes import EpisodeInput
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop

EVALUATED = EvaluationConfig(num_tasks=2, samples=2, at_start=True, at_end=False)


async def seeds_of(client: Client, fakes: FakeActivities, config: LoopConfig) -> dict[str, int]:
    """Run a loop, and give the seed of each episode by its path in the loop."""
    fakes.calls.clear()
    await (await start_loop(client, config)).result()
    episodes: list[EpisodeInput] = [r.episode for r in fakes.requests("episode.take_turns")]
    return {episode.prefix.split("/", 3)[-1]: episode.seed for episode in episodes}


async def test_loops_of_one_configuration_sample_from_the_same_seeds(
    client: Client, fakes: FakeActivities
) -> None:
    config = small_config(num_iterations=2, evaluation=EVALUATED)
    first = await seeds_of(client, fakes, config)
    second = await seeds_of(client, fakes, config)
    other = await seeds_of(client, fakes, config.model_copy(update={"seed": config.seed + 1}))
    assert first == second
    assert first.keys() == other.keys()
    assert not set(first.values()) & set(other.values())


async def test_no_two_episodes_of_a_loop_share_a_seed(
    client: Client, fakes: FakeActivities
) -> None:
    found = await seeds_of(client, fakes, small_config(num_iterations=2, evaluation=EVALUATED))
    assert len(found) > 8
    assert len(set(found.values())) == len(found)
