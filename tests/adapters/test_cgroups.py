"""Which control groups of a host are used."""

from pathlib import Path

import pytest

from loopwright.adapters.cgroups import find_hierarchies
from loopwright.contracts.failures import SandboxUnavailable


def mountinfo(*mounts: tuple[Path | str, str, str]) -> str:
    """Write lines as in /proc/self/mountinfo: mount point, type, options."""
    return "\n".join(
        f"3{i} 2 0:2{i} / {point} rw - {kind} {kind} rw,{options}"
        for i, (point, kind, options) in enumerate(mounts)
    )


V1 = [(f"/cg/{name}", "cgroup", name) for name in ("memory", "pids", "cpu,cpuacct", "cpuset")]


def unified(folder: Path, controllers: str) -> tuple[Path, str, str]:
    folder.mkdir()
    (folder / "cgroup.controllers").write_text(controllers + "\n")
    return (folder, "cgroup2", "nsdelegate")


def test_unified_hierarchy_with_controllers_is_used(tmp_path: Path) -> None:
    mounts = unified(tmp_path / "u", "cpuset cpu io memory hugetlb pids")
    found = find_hierarchies(mountinfo(*V1, mounts))
    assert found.version == 2
    assert found.folders("x") == (tmp_path / "u" / "loopwright" / "x",)


def test_unified_hierarchy_without_controllers_leaves_version_1(tmp_path: Path) -> None:
    found = find_hierarchies(mountinfo(*V1, unified(tmp_path / "u", "hugetlb")))
    assert found.version == 1
    assert found.roots["cpuacct"] == Path("/cg/cpu,cpuacct")
    assert len(found.folders("x")) == 4


def test_host_that_cannot_limit_memory_is_refused() -> None:
    with pytest.raises(SandboxUnavailable, match=r"lack memory \(version 1\)"):
        find_hierarchies(mountinfo(*V1[1:]))
