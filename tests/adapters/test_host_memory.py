"""Memory within the limits of control groups, whose files are made up here."""

from pathlib import Path

import psutil
import pytest

from loopwright.adapters.host_memory import available_bytes, left_in_groups

UNLIMITED_V1 = 2**63 - 4096


def group_v1(folder: Path, *, limit: int, used: int, cached: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{used}\n")
    stat = f"active_file 1\ntotal_active_file {cached}\ntotal_inactive_file {cached}\n"
    (folder / "memory.stat").write_text(stat)


def group_v2(folder: Path, *, limit: int | str, used: int, cached: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\nactive_file {cached}\ninactive_file {cached}\n")


def mount_v1(point: Path, root: str = "/") -> str:
    return f"35 31 0:32 {root} {point} rw,relatime - cgroup cgroup rw,memory\n"


def mount_v2(point: Path, root: str = "/") -> str:
    return f"35 31 0:32 {root} {point} rw,relatime shared:1 - cgroup2 cgroup rw,nsdelegate\n"


def test_limit_of_version_1_less_its_usage_is_left(tmp_path: Path) -> None:
    group_v1(tmp_path, limit=UNLIMITED_V1, used=0)
    group_v1(tmp_path / "box", limit=1000, used=300)
    found = left_in_groups(mount_v1(tmp_path), "5:cpu:/\n4:memory:/box\n0::/\n")
    assert min(found) == 700


def test_limit_of_version_2_less_its_usage_is_left(tmp_path: Path) -> None:
    group_v2(tmp_path / "box", limit=1000, used=300)
    assert left_in_groups(mount_v2(tmp_path), "0::/box\n") == [700]


def test_cached_files_are_not_used_up(tmp_path: Path) -> None:
    group_v1(tmp_path / "one", limit=1000, used=900, cached=250)
    assert left_in_groups(mount_v1(tmp_path / "one"), "4:memory:/\n") == [600]
    group_v2(tmp_path / "two", limit=1000, used=900, cached=250)
    assert left_in_groups(mount_v2(tmp_path / "two"), "0::/\n") == [600]


def test_group_without_a_limit_leaves_it_to_those_around_it(tmp_path: Path) -> None:
    group_v2(tmp_path / "pod", limit=1000, used=400)
    group_v2(tmp_path / "pod" / "box", limit="max", used=100)
    assert left_in_groups(mount_v2(tmp_path), "0::/pod/box\n") == [600]


@pytest.mark.parametrize("path", ["/docker/1f", "/", "/../elsewhere"])
def test_container_finds_its_own_group_at_the_mount_point(tmp_path: Path, path: str) -> None:
    group_v1(tmp_path, limit=1000, used=300)
    assert left_in_groups(mount_v1(tmp_path, root="/docker/1f"), f"4:memory:{path}\n") == [700]


def test_host_without_limits_has_what_the_machine_has(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    assert left_in_groups(mount_v2(tmp_path), "0::/user\n") == []
    assert left_in_groups("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "0::/\n") == []
    assert 0 <= available_bytes() <= psutil.virtual_memory().total
