"""Workspaces by digest: kept, loaded, laid out on any host, compared."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from loopwright.adapters.compression import compress
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.adapters.packing import PACKED_BYTES
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.failures import (
    ArtifactDamaged,
    ContractError,
    StoreError,
    TaskError,
    WorkspaceMissing,
)
from loopwright.contracts.workspaces import MIB, Workspace, WorkspaceFile
from tests.adapters.workspaces import collected, laid_out, random_workspace

SMALL = Workspace.of({"answer.py": b"x = 1\n", "empty": b""})
LARGE = Workspace.of({f"f{i}": bytes([i]) * 20_000 for i in range(10)} | {"empty": b""})
NOBODYS = "0" * 64
Host = Callable[..., Workspaces]


class CountingStore(InMemoryObjectStore):
    """A store that remembers what it was asked, and can be down."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: list[str] = []
        self.gets: list[str] = []
        self.is_down = False

    def put(self, key: str, data: bytes) -> None:
        self._answer(self.puts, key)
        super().put(key, data)

    def get(self, key: str) -> bytes:
        self._answer(self.gets, key)
        return super().get(key)

    def _answer(self, asked: list[str], key: str) -> None:
        if self.is_down:
            raise StoreError(f"S3 failed [key={key}]: connection refused")
        asked.append(key)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def host(store: CountingStore, tmp_path: Path) -> Host:
    """Give the workspaces of a host by its name: all hosts have one store."""

    def build(name: str = "a", *, max_bytes: int = 100 * MIB) -> Workspaces:
        return Workspaces(store, tmp_path / name, max_bytes=max_bytes)

    return build


def bulky(workspace: Workspace) -> Workspace:
    """Add a file that makes the workspace's contents blobs."""
    return Workspace.holding((*workspace.files, WorkspaceFile("bulk", os.urandom(PACKED_BYTES))))


def contents(workspaces: Workspaces, workspace: Workspace) -> Iterable[bytes]:
    return [workspaces.read(file) for file in workspace.files]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("grow", [lambda workspace: workspace, bulky], ids=["packed", "blobs"])
def test_any_host_lays_out_what_another_kept(
    host: Host, tmp_path: Path, seed: int, grow: Callable[[Workspace], Workspace]
) -> None:
    given = grow(random_workspace(seed))
    digest = host("a").keep(given)
    other = host("b")
    found = other.load(digest)
    assert (found, found.digest) == (given, given.digest)
    folder = laid_out(found, tmp_path / "workspace", blobs=other)
    assert collected(folder).workspace.digest == digest


def test_small_workspace_costs_one_put_and_one_get(host: Host, store: CountingStore) -> None:
    digest = host("a").keep(SMALL)
    assert store.puts == [f"workspace/{digest}.zst"]
    found = host("b").load(digest)
    assert [file.data for file in found.files] == [b"x = 1\n", b""]
    assert store.gets == store.puts


def test_what_this_process_has_kept_is_not_sent_again(host: Host, store: CountingStore) -> None:
    workspaces = host()
    workspaces.keep(LARGE)
    sent = len(store.puts)
    workspaces.keep(LARGE)
    assert len(store.puts) == sent == 11
    workspaces.keep(Workspace.holding((*LARGE.files, WorkspaceFile("new", b"1"))))
    assert len(store.puts) == sent + 2


def test_manifest_is_written_after_all_blobs(host: Host, store: CountingStore) -> None:
    digest = host().keep(LARGE)
    assert store.puts[-1] == f"workspace/{digest}.zst"
    assert all(key.startswith("workspace/blob/") for key in store.puts[:-1])


def test_equal_contents_are_one_blob(host: Host, store: CountingStore) -> None:
    host().keep(Workspace.of({name: bytes(PACKED_BYTES) for name in "abc"}))
    assert len(store.puts) == 2


def test_host_that_has_the_blobs_asks_the_store_for_nothing(
    host: Host, store: CountingStore, tmp_path: Path
) -> None:
    digest = host().keep(LARGE)
    again = host()
    laid_out(again.load(digest), tmp_path / "workspace", blobs=again)
    assert store.gets == []


def test_workspace_of_a_loaded_one_sends_only_what_is_new(
    host: Host, store: CountingStore, tmp_path: Path
) -> None:
    digest = host("a").keep(LARGE)
    other = host("b")
    folder = laid_out(other.load(digest), tmp_path / "workspace", blobs=other)
    (folder / "f0").write_bytes(b"new")
    found = collected(folder, blobs=other).workspace
    assert [file.path for file in found.files if file.data is not None] == ["empty", "f0"]
    before = len(store.puts)
    other.keep(found)
    assert len(store.puts) == before + 2


def test_large_workspace_that_shrinks_carries_what_only_blobs_had(
    host: Host, tmp_path: Path
) -> None:
    workspaces = host()
    digest = workspaces.keep(LARGE)
    folder = laid_out(workspaces.load(digest), tmp_path / "workspace", blobs=workspaces)
    for path in folder.iterdir():
        if path.name != "f3":
            path.unlink()
    kept = workspaces.keep(collected(folder, blobs=workspaces).workspace)
    assert [file.data for file in host("b").load(kept).files] == [bytes([3]) * 20_000]


def test_content_that_equals_a_kept_manifest_is_content_all_the_same(host: Host) -> None:
    workspaces = host()
    workspaces.keep(LARGE)
    tricky = bulky(Workspace.of({"copy": LARGE.manifest}))
    digest = workspaces.keep(tricky)
    other = host("b")
    assert other.read(other.load(digest).files[1]) == LARGE.manifest


@pytest.mark.parametrize("given", [SMALL, LARGE])
def test_damaged_cache_is_noticed_and_fetched_again(
    host: Host, tmp_path: Path, given: Workspace
) -> None:
    digest = host().keep(given)
    for path in (tmp_path / "a" / "objects").iterdir():
        path.write_bytes(path.read_bytes()[:-3] + b"bad")
    again = host()
    found = again.load(digest)
    assert contents(again, found) == contents(host("b"), given)
    assert contents(host("a"), host("a").load(digest)) == contents(again, found)


@pytest.mark.parametrize("damage", [b"", b"bad", b"\x28\xb5\x2f\xfd"])
def test_damaged_store_is_told(host: Host, store: CountingStore, damage: bytes) -> None:
    digest = host("a").keep(LARGE)
    blob = store.puts[0]
    store.objects[blob] = damage
    other = host("b")
    found = other.load(digest)
    with pytest.raises(ArtifactDamaged, match=blob):
        contents(other, found)
    store.objects[f"workspace/{digest}.zst"] = damage
    with pytest.raises(ArtifactDamaged, match=digest):
        host("c").load(digest)


def test_object_of_another_workspace_is_not_taken_for_it(host: Host, store: CountingStore) -> None:
    digest, other = host("a").keep(SMALL), host("a").keep(Workspace())
    store.objects[f"workspace/{digest}.zst"] = store.objects[f"workspace/{other}.zst"]
    with pytest.raises(ArtifactDamaged, match="expected sha256"):
        host("b").load(digest)


def test_object_that_would_fill_the_memory_is_refused(host: Host, store: CountingStore) -> None:
    digest = host("a").keep(LARGE)
    store.objects[store.puts[0]] = compress(bytes(100 * MIB))
    with pytest.raises(ArtifactDamaged, match="at most 20000 bytes"):
        contents(host("b"), host("b").load(digest))


def test_digest_that_nobody_has_is_told(host: Host) -> None:
    with pytest.raises(WorkspaceMissing, match=f"workspace {NOBODYS} is not in the store"):
        host().load(NOBODYS)


def test_digest_that_nobody_has_is_told_without_a_store(tmp_path: Path) -> None:
    workspaces = Workspaces(None, tmp_path / "cache", max_bytes=MIB)
    with pytest.raises(WorkspaceMissing, match="no store to ask"):
        workspaces.load(NOBODYS)


@pytest.mark.parametrize("text", ["", "abc", "A" * 64, "0" * 63, "../" * 21 + "x"])
def test_what_is_no_digest_is_refused(host: Host, text: str) -> None:
    with pytest.raises(ContractError, match="64 hexadecimal digits"):
        host().load(text)


def test_store_that_is_down_is_told_and_nothing_counts_as_kept(
    host: Host, store: CountingStore
) -> None:
    workspaces = host("a")
    store.is_down = True
    with pytest.raises(StoreError, match="connection refused"):
        workspaces.keep(LARGE)
    with pytest.raises(StoreError, match="connection refused"):
        workspaces.load(LARGE.digest)
    store.is_down = False
    workspaces.keep(LARGE)
    assert host("b").load(LARGE.digest) == LARGE


def test_workspace_on_this_host_needs_no_store(host: Host, store: CountingStore) -> None:
    digest = host().keep(LARGE)
    store.is_down = True
    again = host()
    found = again.load(digest)
    assert contents(again, found) == contents(again, LARGE)


def test_missing_blob_is_told_and_nothing_is_laid_out_by_halves_unsaid(
    host: Host, store: CountingStore, tmp_path: Path
) -> None:
    digest = host("a").keep(LARGE)
    store.delete([store.puts[4]])
    other = host("b")
    with pytest.raises(WorkspaceMissing, match="content of 'f"):
        laid_out(other.load(digest), tmp_path / "workspace", blobs=other)


def test_cache_that_is_too_small_for_a_workspace_still_lays_it_out(
    host: Host, tmp_path: Path
) -> None:
    given = Workspace.of({f"f{i}": os.urandom(20_000) for i in range(20)})
    digest = host("a").keep(given)
    tight = host("b", max_bytes=50_000)
    folder = laid_out(tight.load(digest), tmp_path / "workspace", blobs=tight)
    assert collected(folder).workspace.digest == digest
    tight.keep(SMALL)
    sizes = [path.stat().st_size for path in (tmp_path / "b" / "objects").iterdir()]
    assert sum(sizes) <= 50_000


def test_cache_folder_that_cannot_be_written_does_no_harm_to_a_store(
    store: CountingStore, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file")
    workspaces = Workspaces(store, tmp_path / "cache", max_bytes=MIB)
    digest = workspaces.keep(SMALL)
    assert workspaces.load(digest) == SMALL
    with pytest.raises(StoreError, match="cannot be kept"):
        Workspaces(None, tmp_path / "cache", max_bytes=MIB).keep(SMALL)


def test_workspaces_without_a_store_live_in_the_cache(tmp_path: Path) -> None:
    first, second = (Workspaces(None, tmp_path / "cache", max_bytes=MIB) for _ in range(2))
    digest = first.keep(LARGE)
    found = second.load(digest)
    assert contents(second, found) == contents(first, LARGE)
    assert not second.is_kept(found.files[0].sha256)


def test_difference_names_what_was_added_modified_and_deleted(host: Host) -> None:
    before = Workspace.holding(
        (
            WorkspaceFile("same", b"1"),
            WorkspaceFile("edited", b"1"),
            WorkspaceFile("mode", b"1"),
            WorkspaceFile("gone", b"1"),
            WorkspaceFile("emptied/file", b"1"),
            WorkspaceFile.folder("filled"),
            WorkspaceFile.link("link", "same"),
        )
    )
    after = Workspace.holding(
        (
            WorkspaceFile("same", b"1"),
            WorkspaceFile("edited", b"2"),
            WorkspaceFile("mode", b"1", executable=True),
            WorkspaceFile.folder("emptied"),
            WorkspaceFile("filled/file", b"1"),
            WorkspaceFile.folder("new"),
            WorkspaceFile.link("link", "edited"),
        )
    )
    workspaces = host()
    found = workspaces.diff(workspaces.keep(before), workspaces.keep(after))
    assert found.added == ("filled/file", "new")
    assert found.modified == ("edited", "link", "mode")
    assert found.deleted == ("emptied/file", "gone")


@pytest.mark.parametrize("given", [SMALL, LARGE])
def test_base_folder_holds_the_files_for_as_long_as_it_is_used(
    host: Host, tmp_path: Path, given: Workspace
) -> None:
    digest = host("a").keep(given)
    other = host("b", max_bytes=300_000)
    with other.base_folder(digest) as folder:
        for _ in range(5):
            other.keep(Workspace.of({"f": os.urandom(2 * PACKED_BYTES)}))
        assert collected(folder).workspace.digest == digest
    with other.base_folder(digest) as again:
        assert again == folder


def test_base_folder_that_cannot_be_had_is_told(host: Host) -> None:
    workspaces = host()
    with pytest.raises(WorkspaceMissing), workspaces.base_folder(NOBODYS):
        pass
    unsafe = workspaces.keep(Workspace.of({"../x": b""}))
    with pytest.raises(TaskError, match=r"'\.\./x'"), workspaces.base_folder(unsafe):
        pass


def test_error_of_who_uses_a_base_folder_is_its_own(host: Host) -> None:
    workspaces = host()
    digest = workspaces.keep(SMALL)
    with pytest.raises(FileNotFoundError), workspaces.base_folder(digest) as folder:
        (folder / "no-such-file").read_bytes()


def test_processes_share_a_cache_that_is_too_small_for_all_they_do(tmp_path: Path) -> None:
    program = """
import os, random, sys
from pathlib import Path
from loopwright.adapters.collect import lay_out, open_folder
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.workspaces import Workspace
from tests.adapters.workspaces import DirectoryStore, collected

root, seed = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
workspaces = Workspaces(DirectoryStore(root / "store"), root / "cache", max_bytes=400_000)
for index in range(25):
    names = chance.sample(range(20), 6)
    given = Workspace.of({str(name): bytes([name]) + b"x" * 20_000 for name in names})
    digest = workspaces.keep(given)
    folder = root / f"{seed}-{index}"
    folder.mkdir()
    with open_folder(folder) as opened:
        lay_out(workspaces.load(digest), opened, owner=os.geteuid(), blobs=workspaces)
    assert collected(folder).workspace.digest == digest
    with workspaces.base_folder(digest) as base:
        assert collected(base).workspace.digest == digest
"""
    (tmp_path / "store").mkdir()
    processes = [
        subprocess.Popen((sys.executable, "-c", program, str(tmp_path), str(seed)))
        for seed in range(4)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert not list((tmp_path / "cache" / "uses").iterdir())
