"""A benchmark that misses its target fails, and a busy host does not make it."""

import pytest

from benchmarks.__main__ import main
from benchmarks.figures import QUIET_TRUE_SECONDS, Absent, Count, Figure, Latency, Ratio, Share
from benchmarks.timing import median_seconds, per_second


@pytest.mark.parametrize(
    ("figure", "is_met"),
    [
        (Ratio("x", 3.9, 1.0, at_most=4.0), True),
        (Ratio("x", 4.1, 1.0, at_most=4.0), False),
        (Share("x", 51, 100, at_least=0.5), True),
        (Share("x", 49, 100, at_least=0.5), False),
        (Latency("x", 3.9e-3, 4e-3, QUIET_TRUE_SECONDS), True),
        (Latency("x", 4.1e-3, 4e-3, QUIET_TRUE_SECONDS), False),
        (Count("x", 0, 40), True),
        (Count("x", 1, 40), False),
    ],
)
def test_figure_beyond_its_bound_is_missed(figure: Figure, is_met: bool) -> None:
    assert figure.is_met is is_met
    assert ("MISSED" in str(figure)) is not is_met


@pytest.mark.parametrize(
    "figure",
    [
        Ratio("x", 9.0, 1.0),
        Share("x", 1, 100),
        Count("x", 9, 9, has_target=False),
        Absent("x", "it is not here"),
    ],
)
def test_comparison_has_no_target(figure: Figure) -> None:
    assert figure.is_met
    assert "MISSED" not in str(figure)
    assert "ok" not in str(figure)


@pytest.mark.parametrize(("slowness", "is_met"), [(0.5, False), (1.0, False), (2.0, True)])
def test_slow_host_stretches_a_bound_in_seconds_and_a_fast_one_does_not_lower_it(
    slowness: float, is_met: bool
) -> None:
    true_seconds = QUIET_TRUE_SECONDS * slowness
    assert Latency("x", 5e-3, 4e-3, true_seconds).is_met is is_met
    assert Latency("x", 4e-3, 4e-3, true_seconds).is_met


def test_cases_take_turns_and_the_first_turn_does_not_count() -> None:
    taken = {"ours": [100.0, 3.0, 1.0, 2.0], "reference": [100.0, 6.0, 4.0, 5.0]}
    order: list[str] = []

    def taken_by(name: str) -> float:
        order.append(name)
        return taken[name][order.count(name) - 1]

    cases = {name: (lambda name=name: taken_by(name)) for name in taken}
    assert median_seconds(cases, repeats=3) == {"ours": 2.0, "reference": 5.0}
    assert order == ["ours", "reference"] * 4


def test_every_caller_is_served() -> None:
    served: list[int] = []
    assert per_second(lambda: served.append(1), callers=3, num_runs=5) > 0
    assert len(served) == 8


def test_unknown_benchmark_is_named_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sandbocks"]) == 2
    assert "no benchmark sandbocks; there are: sandbox, reproducibility" in capsys.readouterr().err
