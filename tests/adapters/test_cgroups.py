"""Which control groups of a host are used."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loopwright.adapters.cgroups import GROUP, Hierarchies, find_hierarchies
from loopwright.adapters.cgroups_v1 import CgroupV1
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import MIB
from tests.adapters.jails import needs_jails


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


@contextmanager
def group_of_version_1() -> Iterator[tuple[CgroupV1, Hierarchies]]:
    hierarchies = find_hierarchies()
    if hierarchies.version != 1:
        pytest.skip("this host has no control groups of version 1")
    cpu = min(os.sched_getaffinity(0))
    group = CgroupV1(hierarchies, f"test-{os.getpid()}", cpu=cpu)
    try:
        yield group, hierarchies
    finally:
        group.remove()


@pytest.mark.nsjail
@needs_jails
def test_limits_of_each_run_are_in_force_whatever_those_of_the_run_before() -> None:
    with group_of_version_1() as (group, hierarchies):
        folder = hierarchies.roots["memory"] / GROUP / f"test-{os.getpid()}"
        for memory_bytes in (64 * MIB, 64 * MIB, 32 * MIB, 64 * MIB):
            group.begin(memory_bytes=memory_bytes, max_processes=9)
            assert int((folder / "memory.limit_in_bytes").read_text()) == memory_bytes


@pytest.mark.nsjail
@needs_jails
def test_jails_of_one_cpu_weigh_as_much_as_a_process_of_the_host() -> None:
    with group_of_version_1() as (_, hierarchies):
        shares = hierarchies.roots["cpu"] / GROUP / "cpu.shares"
        assert int(shares.read_text()) == 1024 * len(os.sched_getaffinity(0))
