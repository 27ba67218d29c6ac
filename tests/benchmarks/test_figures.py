"""A benchmark that misses its target fails."""

import pytest

from benchmarks.__main__ import main
from benchmarks.ratios import Ratio, median_seconds


@pytest.mark.parametrize(("ours", "met"), [(3.9, True), (4.0, True), (4.1, False)])
def test_ratio_over_its_bound_is_missed(ours: float, met: bool) -> None:
    ratio = Ratio("x", ours_seconds=ours, reference_seconds=1.0, at_most=4.0)
    assert ratio.is_met is met
    assert ("MISSED" in str(ratio)) is not met


def test_first_run_of_each_is_not_measured() -> None:
    calls: list[str] = []
    median_seconds(lambda: calls.append("ours"), lambda: calls.append("reference"), repeats=2)
    assert calls == ["ours", "reference"] * 3


def test_unknown_benchmark_is_named_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sandbocks"]) == 2
    assert "no benchmark sandbocks; there are: sandbox" in capsys.readouterr().err
