"""The wheel, built through the sdist, has every module and data file of the repository."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKED = ("workflows", "activities", "workers", "deploy")
HELPERS = {f"loopwright/deploy/nsjail/bin/{name}" for name in ("jinit", "jstrict.so", "launcher")}
DATA = ("loopwright/policies/", "loopwright/deploy/")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Give the files that git knows and that are still there."""
    command = ["git", "ls-files", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [Path(name) for name in listing.split("\0") if name]
    return [path for path in paths if (ROOT / path).exists() or (ROOT / path).is_symlink()]


@pytest.fixture(scope="module")
def wheel(tracked: list[Path], tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Build from a copy of the tracked files; give the names in the wheel."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("out")
    for path in tracked:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, source / path, follow_symlinks=False)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return set(zipfile.ZipFile(built).namelist())


def packaged_name(path: Path) -> str | None:
    """Give the name of a file inside the package, or None if it stays outside."""
    if path.parts[0] in LINKED:
        return f"loopwright/{path.as_posix()}"
    if path.is_relative_to("src/loopwright") and not (ROOT / path).is_symlink():
        return path.relative_to("src").as_posix()
    return None


def test_wheel_has_every_module_and_data_file(tracked: list[Path], wheel: set[str]) -> None:
    names = {name for name in map(packaged_name, tracked) if name}
    wanted = {n for n in names if n.endswith((".py", "py.typed")) or n.startswith(DATA)}
    assert len(wanted) > 50
    assert wanted <= wheel, sorted(wanted - wheel)


def test_wheel_has_the_helpers_of_jails(wheel: set[str]) -> None:
    assert wheel >= HELPERS


def test_wheel_has_nothing_of_its_own(tracked: list[Path], wheel: set[str]) -> None:
    names = {name for name in map(packaged_name, tracked) if name}
    inside = {name for name in wheel if name.startswith("loopwright/")} - HELPERS
    assert inside <= names, sorted(inside - names)
    others = wheel - inside - HELPERS
    assert {name.split("/")[0] for name in others} == {"loopwright-0.1.0.dist-info"}
