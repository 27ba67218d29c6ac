"""Loops over several environments, with fake activities on the real server."""

from collections import Counter

from temporalio.client import Client

from loopwright.contracts.configs import EnvironmentConfig, EvaluationConfig, LoopConfig
from tests.fakes import FakeActivities
from tests.workflows.conftest import small_config, start_loop

STEPS = EnvironmentConfig(id="program_steps", weight=2, options={"max_difficulty": 2})
RIDDLES = EnvironmentConfig(id="riddles", options={"language": "en"})


def config() -> LoopConfig:
    """Make one iteration of three groups of four: two of the first, one of the second."""
    return small_config(environments=(STEPS, RIDDLES), num_iterations=1)


async def test_each_environment_has_its_share_of_the_groups(
    client: Client, fakes: FakeActivities
) -> None:
    result = await (await start_loop(client, config())).result()
    row = result.results[0]
    assert (row.num_groups, row.num_admitted, row.num_episodes, row.num_lost) == (3, 3, 12, 0)
    scored = Counter(r.task.environment for r in fakes.requests("control.score_group"))
    assert scored == {"program_steps": 2, "riddles": 1}


async def test_episode_is_told_the_environment_of_its_task_with_its_options(
    client: Client, fakes: FakeActivities
) -> None:
    await (await start_loop(client, config())).result()
    episodes = [r.episode for r in fakes.requests("episode.take_turns")]
    told = Counter((e.task.environment, e.environment.id) for e in episodes)
    assert told == {("program_steps", "program_steps"): 8, ("riddles", "riddles"): 4}
    assert all(e.environment in (STEPS, RIDDLES) for e in episodes)


async def test_tasks_of_one_name_in_two_environments_are_kept_apart(
    client: Client, fakes: FakeActivities
) -> None:
    await (await start_loop(client, config())).result()
    episodes = [r.episode for r in fakes.requests("episode.take_turns") if r.episode.index == 0]
    namesakes = [e for e in episodes if e.task.task_id == "t0"]
    assert {e.task.environment for e in namesakes} == {"program_steps", "riddles"}
    assert len({e.prefix for e in episodes}) == 3
    assert len({e.seed for e in namesakes}) == 2


async def test_evaluation_covers_every_environment(client: Client, fakes: FakeActivities) -> None:
    evaluation = EvaluationConfig(num_tasks=3, samples=2, at_start=False, at_end=True)
    changed = config().model_copy(update={"evaluation": evaluation})
    result = await (await start_loop(client, changed)).result()
    episodes = [r.episode for r in fakes.requests("episode.take_turns")]
    evaluated = Counter(e.task.environment for e in episodes if e.kind == "evaluation")
    assert evaluated == {"program_steps": 4, "riddles": 2}
    assert result.final_evaluation.num_lost == 0
