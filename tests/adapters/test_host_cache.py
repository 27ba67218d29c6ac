"""The cache folder of a host: its bound, what goes first, and what stays."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loopwright.adapters.host_cache import HostCache

PAGE = 4096


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def set_used(root: Path, name: str, seconds: float) -> None:
    """Say when an object or folder was used last."""
    path = root / "objects" / name
    os.utime(path if path.exists() else root / "folders" / name / "about", (seconds, seconds))


def names(root: Path) -> set[str]:
    folders = root / "folders"
    found = {path.name for path in (root / "objects").iterdir()}
    return found | ({path.name for path in folders.iterdir()} if folders.exists() else set())


def one_file(content: bytes) -> Callable[[Path], int]:
    def make(folder: Path) -> int:
        (folder / "file").write_bytes(content)
        return len(content)

    return make


def test_object_is_there_for_every_process_of_the_host(root: Path) -> None:
    HostCache(root, max_bytes=10 * PAGE).write("a", b"1")
    other = HostCache(root, max_bytes=10 * PAGE)
    assert (other.read("a"), other.has("a")) == (b"1", True)
    assert (other.read("b"), other.has("b")) == (None, False)


def test_what_was_used_longest_ago_goes_first(root: Path) -> None:
    cache = HostCache(root, max_bytes=4 * PAGE)
    for name in "abcd":
        cache.write(name, b"1")
        set_used(root, name, ord(name))
    cache.read("a")
    cache.write("e", b"1")
    assert names(root) == {"a", "d", "e"}


def test_cache_stays_within_its_bound_whatever_is_written(root: Path) -> None:
    cache = HostCache(root, max_bytes=64 * PAGE)
    for index in range(300):
        cache.write(str(index), bytes(index * 50))
    used = [path.stat().st_size for path in (root / "objects").iterdir()]
    assert 0 < sum(used) <= 64 * PAGE * (1 + 1 / 16)


def test_what_is_in_use_is_never_evicted(root: Path) -> None:
    cache, other = (HostCache(root, max_bytes=2 * PAGE) for _ in range(2))
    cache.write("a", b"1")
    set_used(root, "a", 0)
    with cache.using(["a"]):
        for name in "bcdef":
            other.write(name, b"1")
        assert cache.has("a")
    set_used(root, "a", 0)
    other.write("g", b"1")
    assert not cache.has("a")


def test_use_by_a_process_that_died_counts_no_more(root: Path) -> None:
    cache = HostCache(root, max_bytes=2 * PAGE)
    cache.write("a", b"1")
    set_used(root, "a", 0)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from loopwright.adapters.host_cache import HostCache\n"
        "with HostCache(Path(sys.argv[1]), max_bytes=1).using(['a']): os._exit(0)"
    )
    subprocess.run((sys.executable, "-c", code, str(root)), check=True)
    assert list((root / "uses").iterdir())
    cache.write("b", b"1")
    cache.write("c", b"1")
    assert not cache.has("a")
    assert not list((root / "uses").iterdir())


def test_folder_is_made_once_and_whole(root: Path) -> None:
    cache = HostCache(root, max_bytes=100 * PAGE)
    with cache.folder("a", one_file(b"1")) as folder:
        assert (folder / "file").read_bytes() == b"1"
    with HostCache(root, max_bytes=100 * PAGE).folder("a", one_file(b"2")) as folder:
        assert (folder / "file").read_bytes() == b"1"


def test_folder_that_could_not_be_made_leaves_nothing(root: Path) -> None:
    cache = HostCache(root, max_bytes=100 * PAGE)

    def fail(folder: Path) -> int:
        (folder / "file").write_bytes(b"1")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), cache.folder("a", fail):
        pass
    assert not list((root / "folders").iterdir())
    with cache.folder("a", one_file(b"2")) as folder:
        assert (folder / "file").read_bytes() == b"2"


def test_folder_is_evicted_when_nobody_uses_it(root: Path) -> None:
    cache = HostCache(root, max_bytes=10 * PAGE)
    with cache.folder("a", one_file(bytes(9 * PAGE))) as folder:
        set_used(root, "a", 0)
        for name in "bcd":
            cache.write(name, bytes(PAGE))
        assert (folder / "file").exists()
    set_used(root, "a", 0)
    cache.write("e", bytes(PAGE))
    cache.write("f", bytes(PAGE))
    assert "a" not in names(root)


def test_folder_of_an_earlier_boot_is_made_again(root: Path) -> None:
    cache = HostCache(root, max_bytes=100 * PAGE)
    with cache.folder("a", one_file(b"1")):
        pass
    (root / "folders" / "a" / "about").write_text("1 another-boot")
    with cache.folder("a", one_file(b"2")) as folder:
        assert (folder / "file").read_bytes() == b"2"
    assert names_of_folders(root) == ["a"]


def names_of_folders(root: Path) -> list[str]:
    return [path.name for path in (root / "folders").iterdir()]


def test_what_a_process_left_unfinished_is_removed_in_time(root: Path) -> None:
    cache = HostCache(root, max_bytes=100 * PAGE)
    cache.write("a", b"1")
    old = [root / "objects" / "unfinished-1", root / "folders" / "unfinished-2"]
    old[0].touch()
    old[1].mkdir(parents=True)
    (root / "objects" / "unfinished-new").touch()
    for path in old:
        os.utime(path, (0, 0))
    HostCache(root, max_bytes=100 * PAGE).write("b", b"1")
    assert names(root) == {"a", "b", "unfinished-new"}
