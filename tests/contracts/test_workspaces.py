"""Workspaces as values: the order of entries, the manifest, the digest."""

import hashlib
from dataclasses import replace

import pytest

from loopwright.contracts.failures import ContractError
from loopwright.contracts.workspaces import Workspace, WorkspaceFile
from tests.adapters.workspaces import random_workspace

ONE = hashlib.sha256(b"1").hexdigest()


@pytest.mark.parametrize("seed", range(20))
def test_manifest_gives_the_workspace_back(seed: int) -> None:
    given = random_workspace(seed)
    found = Workspace.from_manifest(given.manifest)
    assert (found, found.digest) == (given, given.digest)
    assert all(file.data is None for file in found.files)


def test_digest_is_the_same_wherever_the_content_is() -> None:
    given = Workspace.of({"a": b"1", "b": b"2"})
    bare = Workspace(tuple(replace(file, data=None) for file in given.files))
    assert bare.digest == given.digest
    assert bare == given


def test_digest_is_the_sha256_of_the_manifest() -> None:
    entries = (
        WorkspaceFile("b", b"1"),
        WorkspaceFile("a b", b"1", executable=True),
        WorkspaceFile.link("l", "a b"),
        WorkspaceFile.folder("out"),
    )
    manifest = f"3:a b 755 1 {ONE}\n1:b 644 1 {ONE}\n1:l link 3:a b\n3:out folder\n".encode()
    assert Workspace.holding(entries).manifest == manifest
    assert Workspace.holding(entries).digest == hashlib.sha256(manifest).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        WorkspaceFile("a", b"2"),
        WorkspaceFile("b", b"1"),
        WorkspaceFile("a", b"1", executable=True),
        WorkspaceFile.folder("a"),
        WorkspaceFile.link("a", "1"),
    ],
)
def test_digest_tells_what_differs(other: WorkspaceFile) -> None:
    assert Workspace((other,)).digest != Workspace.of({"a": b"1"}).digest


def test_digest_cannot_be_forged_by_a_name() -> None:
    forged = Workspace.of({f"a 644 1 {ONE}\n1:b": b"1"})
    assert forged.digest != Workspace.of({"a": b"1", "b": b"1"}).digest


def test_order_of_the_entries_given_does_not_matter() -> None:
    files = [WorkspaceFile(path, b"") for path in ("é", "a.txt", "a/z", "Z")]
    assert Workspace.holding(files) == Workspace.holding(reversed(files))
    assert [file.path for file in Workspace.holding(files).files] == ["Z", "a.txt", "a/z", "é"]


def test_folder_that_holds_something_needs_no_mention() -> None:
    entries = [WorkspaceFile.folder("a"), WorkspaceFile.folder("a/b"), WorkspaceFile("a/b/c", b"")]
    assert Workspace.holding(entries) == Workspace.of({"a/b/c": b""})


@pytest.mark.parametrize(
    "text",
    [
        *(b"x", b"1:a", b"1:a 644\n", b"1:a 644 x y\n", b"9:a folder\n"),
        b"1:a folder\n1:b link -14:\n",  # back to the end of the line before
        b"+1:a folder\n",
    ],
)
def test_what_is_no_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(ContractError, match="no manifest"):
        Workspace.from_manifest(text)
