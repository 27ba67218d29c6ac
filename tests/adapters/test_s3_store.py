"""The object store, against a real S3 server and its absence."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loopwright.adapters.artifacts import fetch, keep
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.adapters.s3_store import S3ObjectStore
from loopwright.contracts.failures import ArtifactDamaged, StoreError
from loopwright.core.protocols import ObjectStore
from tests.servers import free_port, open_store, s3_server


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[S3ObjectStore, Path]]:
    folder, port = tmp_path_factory.mktemp("s3"), free_port()
    with s3_server(folder, port):
        yield open_store(port), folder / "data" / "tests"


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    if request.param == "memory":
        return InMemoryObjectStore()
    opened: ObjectStore = request.getfixturevalue("s3")[0]
    return opened


def test_object_comes_back_as_it_was_put(store: ObjectStore) -> None:
    data = bytes(range(256)) * 100
    store.put("a/b.bin", data)
    assert store.get("a/b.bin") == data
    assert store.exists("a/b.bin")


def test_missing_object_is_a_key_error(store: ObjectStore) -> None:
    assert not store.exists("no/such")
    with pytest.raises(KeyError):
        store.get("no/such")


def test_listing_gives_only_the_prefix_in_order(store: ObjectStore) -> None:
    for key in ("list/b", "list/a", "lister", "list/c/d"):
        store.put(key, b"x")
    assert list(store.list_keys("list/")) == ["list/a", "list/b", "list/c/d"]
    assert list(store.list_keys("nothing/")) == []


def test_folders_below_a_prefix_are_listed_once_and_in_order(store: ObjectStore) -> None:
    for key in ("tree/b/1", "tree/a/1", "tree/a/2/3", "tree/file", "trees/c/1"):
        store.put(key, b"x")
    assert list(store.list_folders("tree/")) == ["a", "b"]
    assert list(store.list_folders("nothing/")) == []


def test_deleting_what_is_not_there_is_no_error(store: ObjectStore) -> None:
    store.put("gone", b"x")
    store.delete(["gone", "never/there"])
    assert not store.exists("gone")


@pytest.mark.s3
def test_listing_goes_over_all_pages_that_many_threads_wrote(
    s3: tuple[S3ObjectStore, Path],
) -> None:
    store, _ = s3
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda i: store.put(f"many/{i:05d}", b"%d" % i), range(1005)))
    assert len(store.list_keys("many/")) == 1005


@pytest.mark.s3
def test_body_holds_the_bytes_and_nothing_else(s3: tuple[S3ObjectStore, Path]) -> None:
    store, folder = s3
    store.put("framing", b"12345")
    assert (folder / "framing").read_bytes() == b"12345"


def test_store_that_is_away_is_named_in_the_error() -> None:
    store = S3ObjectStore(
        "b", endpoint=f"http://127.0.0.1:{free_port()}", access_key="key", secret_key="secret"
    )
    with pytest.raises(StoreError, match=r"bucket=b, key=k"):
        store.get("k")


def test_artifact_key_ends_in_the_digest_of_its_content(store: ObjectStore) -> None:
    ref = keep(store, b"content", prefix="p", name="batch", suffix=".bin", kind="batch")
    assert ref.sha256 == hashlib.sha256(b"content").hexdigest()
    assert ref.key == f"p/batch-{ref.sha256[:32]}.bin"
    assert fetch(store, ref) == b"content"


@pytest.mark.parametrize("damage", [b"", b"conten", b"Content"])
def test_damaged_artifact_is_refused_by_name(damage: bytes) -> None:
    store = InMemoryObjectStore()
    ref = keep(store, b"content", prefix="p", name="batch", suffix=".bin", kind="batch")
    store.objects[ref.key] = damage
    with pytest.raises(ArtifactDamaged, match=rf"{ref.key} is damaged: .*restore this object"):
        fetch(store, ref)


def test_missing_artifact_is_refused_by_name() -> None:
    store = InMemoryObjectStore()
    ref = keep(store, b"content", prefix="p", name="batch", suffix=".bin", kind="batch")
    store.delete([ref.key])
    with pytest.raises(ArtifactDamaged, match=rf"{ref.key} is not in the store; .*restore"):
        fetch(store, ref)
