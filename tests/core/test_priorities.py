"""Which work goes first, and the shares of work that is equally urgent."""

import pytest

from loopwright.contracts.configs import EnvironmentConfig, LoopConfig
from loopwright.contracts.episodes import EpisodeKind, Priority
from loopwright.core import priorities
from loopwright.core.priorities import Work

ALONE = LoopConfig(environments=(EnvironmentConfig(id="a"),))
PAIR = LoopConfig(
    environments=(EnvironmentConfig(id="a", weight=1), EnvironmentConfig(id="b", weight=3))
)


def of(work: Work, config: LoopConfig = ALONE, *, loop_id: str = "math") -> Priority:
    return priorities.of(work, loop_id=loop_id, config=config)


def key_of(
    kind: EpisodeKind, *, versions_left: int | None = None, is_straggler: bool = False
) -> int:
    work = Work(kind=kind, environment="a", versions_left=versions_left, is_straggler=is_straggler)
    return of(work).key


def test_evaluations_go_before_all_training_and_audits_after() -> None:
    late = key_of("training", is_straggler=True, versions_left=0)
    assert key_of("evaluation") < late < key_of("training") < key_of("audit")


@pytest.mark.parametrize(
    ("versions_left", "is_straggler", "is_late"),
    [
        (None, False, False),
        (None, True, True),
        (2, False, False),
        (1, False, False),
        (0, False, True),
    ],
)
def test_training_is_late_where_it_is_waited_for_alone_or_about_to_be_too_old(
    versions_left: int | None, is_straggler: bool, is_late: bool
) -> None:
    key = key_of("training", versions_left=versions_left, is_straggler=is_straggler)
    assert key == (priorities.LATE if is_late else priorities.TRAINING)


@pytest.mark.parametrize("kind", ["evaluation", "audit"])
def test_only_training_is_ever_late(kind: EpisodeKind) -> None:
    assert key_of(kind, versions_left=0, is_straggler=True) == key_of(kind)


@pytest.mark.parametrize(("kind", "key"), [("training", 2), ("evaluation", 1), ("audit", 2)])
def test_what_is_hastened_never_falls_back(kind: EpisodeKind, key: int) -> None:
    usual = of(Work(kind=kind, environment="a"))
    assert priorities.hastened(usual) == usual.model_copy(update={"key": key})


# weight of the loop x share of the environment x (0.5 if ahead) x curriculum
@pytest.mark.parametrize(
    ("work", "loop_weight", "weight"),
    [
        (Work("training", "a"), 1, 1 * 1 / 4),
        (Work("training", "b"), 1, 1 * 3 / 4),
        (Work("training", "b"), 2, 2 * 3 / 4),
        (Work("training", "b", phase="ahead"), 2, 2 * 3 / 4 * 0.5),
        (Work("training", "b", curriculum_weight=4), 2, 2 * 3 / 4 * 4),
        (Work("evaluation", "b", phase="ahead"), 2, 2 * 3 / 4),
        (Work("training", "b", curriculum_weight=1e9), 2, 1000),
        (Work("training", "b", curriculum_weight=0), 2, 0.001),
    ],
)
def test_weight_follows_loop_environment_phase_and_curriculum(
    work: Work, loop_weight: float, weight: float
) -> None:
    config = PAIR.model_copy(update={"fairness_weight": loop_weight})
    assert of(work, config).fairness_weight == pytest.approx(weight)


def test_weights_of_a_loops_environments_add_up_to_the_loops() -> None:
    weights = [of(Work("training", each), PAIR).fairness_weight for each in ("a", "b")]
    assert sum(weights) == of(Work("training", "a")).fairness_weight == 1


def test_environment_that_is_passed_by_leaves_its_share_to_the_others() -> None:
    first, second = PAIR.environments
    config = PAIR.model_copy(
        update={"environments": (first, second.model_copy(update={"is_passed_by": True}))}
    )
    assert of(Work("training", "a"), config).fairness_weight == 1


def test_environments_may_share_workers_otherwise_than_tasks() -> None:
    first, second = PAIR.environments
    config = LoopConfig(
        environments=(first, second.model_copy(update={"fairness_weight": 1.0})),
        fairness_weight=4,
    )
    assert of(Work("training", "a"), config).fairness_weight == pytest.approx(2)


def test_loop_shares_as_one_and_with_several_environments_as_each() -> None:
    assert of(Work("training", "a")).fairness_key == "math"
    assert of(Work("training", "b"), PAIR).fairness_key == "math/b"


@pytest.mark.parametrize("environment", ["e" * 80, "\u00e9" * 40, "\U0001f600" * 20])
def test_long_names_share_apart_within_temporals_64_bytes(environment: str) -> None:
    others = (EnvironmentConfig(id="a"), EnvironmentConfig(id=environment))
    config = LoopConfig(environments=(*others, EnvironmentConfig(id=f"{environment}2")))
    keys = {
        of(Work("training", each.id), config, loop_id=loop_id).fairness_key
        for each in config.environments
        for loop_id in ("l" * 64, "l" * 63 + "m")
    }
    assert len(keys) == 6
    assert max(len(key.encode()) for key in keys) <= 64
