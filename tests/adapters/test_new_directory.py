"""Directories that appear whole or not at all."""

from contextlib import suppress
from pathlib import Path

import pytest

from loopwright.adapters.new_directory import new_directory
from loopwright.contracts.failures import UserError


def test_directory_gets_its_name_when_it_is_full(tmp_path: Path) -> None:
    output = tmp_path / "policy"
    with new_directory(output) as unfinished:
        (unfinished / "a").write_text("a")
        assert not output.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    assert (output / "a").read_text() == "a"
    assert output.stat().st_mode & 0o777 == 0o755


def test_directory_that_failed_to_fill_leaves_nothing(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), new_directory(tmp_path / "policy") as unfinished:
        (unfinished / "a").write_text("a")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".", "exists; name a new directory"),
        ("no/such", "has no parent directory"),
        ("p" * 300, "cannot be made: File name too long"),
    ],
)
def test_name_that_cannot_be_had_is_refused_before_anything_is_done(
    tmp_path: Path, name: str, expected: str
) -> None:
    with pytest.raises(UserError, match=expected), new_directory(tmp_path / name):
        raise AssertionError("the block does not run")
    assert list(tmp_path.iterdir()) == []
