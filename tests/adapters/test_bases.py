"""Workspaces that begin with the files of a kept one, which are shown and not copied."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.failures import SandboxUnavailable, WorkspaceMissing
from loopwright.contracts.workspaces import MIB, CommandRequest, Limits, Workspace, WorkspaceFile
from loopwright.core.protocols import JailRun
from tests.adapters.jails import needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]
BASE = Workspace.holding(
    (
        *(WorkspaceFile(f"src/{index}.txt", b"%d\n" % index) for index in range(200)),
        WorkspaceFile("run.sh", b"#!/bin/sh\necho ran\n", executable=True),
        WorkspaceFile("old/deep/file", b"old"),
        WorkspaceFile.link("link", "src/1.txt"),
        WorkspaceFile.folder("out"),
    )
)


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory: pytest.TempPathFactory) -> Workspaces:
    kept = Workspaces(None, tmp_path_factory.mktemp("cache"), max_bytes=64 * MIB)
    kept.keep(BASE)
    return kept


@pytest.fixture(scope="module", params=["native", "nsjail"])
def jail(
    request: pytest.FixtureRequest, workspaces: Workspaces, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalJail]:
    root = tmp_path_factory.mktemp("jails") / "root"
    with LocalJail(root, num_slots=1, launcher=request.param, blobs=workspaces) as opened:
        yield opened


def shell(jail: LocalJail, workspace: Workspace, command: str, base: str = BASE.digest) -> JailRun:
    return jail.run(workspace, CommandRequest(argv=("/bin/sh", "-c", command), base=base))


def test_base_is_there_as_the_commands_own(jail: LocalJail) -> None:
    done = shell(jail, BASE, "cat src/7.txt link; ./run.sh; stat -c %u src/7.txt . out; id -u")
    assert done.result.stdout == b"7\n1\nran\n1000\n1000\n1000\n1000\n"
    assert done.result.stderr == b""
    assert done.workspace.digest == BASE.digest
    assert done.skipped == ()


def test_changes_are_found_and_the_base_stays(jail: LocalJail, workspaces: Workspaces) -> None:
    command = "echo new >> src/1.txt; rm -r old; chmod +x src/2.txt; mv run.sh go.sh; rmdir out"
    left = shell(jail, BASE, command).workspace
    difference = workspaces.diff(BASE.digest, workspaces.keep(left))
    assert difference.added == ("go.sh",)
    assert difference.modified == ("src/1.txt", "src/2.txt")
    assert difference.deleted == ("old/deep/file", "out", "run.sh")
    assert shell(jail, BASE, "true").workspace.digest == BASE.digest


@pytest.mark.parametrize(
    "changed",
    [
        Workspace(),
        Workspace.of({"old": b"a file where a folder was", "src/1.txt": b"1\n"}),
        Workspace.of({"link/in": b"a folder where a link was", "src/1.txt": b"1\n"}),
        Workspace.holding((*BASE.files, WorkspaceFile("old/deep/new", b"1"))),
        Workspace.holding(WorkspaceFile(file.path, b"x") for file in BASE.files if file.size),
    ],
    ids=["nothing", "file for folder", "folder for link", "one more", "all other"],
)
def test_any_workspace_can_be_made_of_a_base(jail: LocalJail, changed: Workspace) -> None:
    assert shell(jail, changed, "true").workspace.digest == changed.digest


def test_folder_does_not_tell_when_something_of_the_base_was_left_out(jail: LocalJail) -> None:
    fewer = Workspace(tuple(file for file in BASE.files if file.path not in ("src/1.txt", "out")))
    assert shell(jail, fewer, "stat -c %Y . src old").result.stdout == b"0\n0\n0\n"


def test_changes_are_bounded(jail: LocalJail) -> None:
    command = "for i in 1 2 3; do head -c 900000 /dev/zero > big$i; done; rm big*"
    request = CommandRequest(
        argv=("/bin/sh", "-c", command), base=BASE.digest, limits=Limits(disk_bytes=2 * MIB)
    )
    result = jail.run(BASE, request).result
    assert b"No space left on device" in result.stderr


def test_base_that_nobody_kept_is_refused_and_the_slot_goes_on(jail: LocalJail) -> None:
    with pytest.raises(WorkspaceMissing):
        shell(jail, BASE, "true", base="0" * 64)
    assert shell(jail, Workspace(), "true", base="").result.exit_code == 0


def test_jails_without_kept_workspaces_refuse_a_base(tmp_path: Path) -> None:
    with (
        LocalJail(tmp_path / "root", num_slots=1) as jail,
        pytest.raises(SandboxUnavailable, match="no kept workspaces"),
    ):
        shell(jail, BASE, "true")
    assert not (tmp_path / "root").exists()
