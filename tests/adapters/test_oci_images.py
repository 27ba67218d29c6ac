"""Images from OCI layouts: which one, how its layers lie over each other, and damage."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.adapters.roots import Roots
from loopwright.contracts.failures import UserError
from tests.adapters.images import (
    INDEX,
    LAYER,
    MANIFEST,
    TAG,
    Layout,
    as_tar,
    file,
    folder,
    hard_link,
    image_of,
    link,
    pack,
    sha256,
)
from tests.adapters.stores import found_in, reachable_folder

BASE = [
    folder("./"),
    folder("usr/bin"),
    file("usr/bin/tool", b"#!tool", mode=0o4755),
    hard_link("usr/bin/alias", "usr/bin/tool"),
    link("bin", "usr/bin"),
    file("etc/name", b"box\n"),
]
FOUND = {
    "bin": "-> usr/bin",
    "etc": "755/",
    "etc/name": "644 box\n",
    "usr": "755/",
    "usr/bin": "755/",
    "usr/bin/alias": "755 #!tool",
    "usr/bin/tool": "755 #!tool",
}


@pytest.fixture
def roots() -> Iterator[Roots]:
    with reachable_folder() as store:
        yield Roots(store / "roots")


@pytest.mark.parametrize("compression", ["", "+gzip", "+zstd"])
def test_image_becomes_a_root_however_it_is_compressed(
    roots: Roots, tmp_path: Path, compression: str
) -> None:
    root = roots.import_oci_layout(image_of(tmp_path / "i", BASE, compression=compression), "box")
    assert found_in(root) == FOUND


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_and_odd_names_are_kept(roots: Roots, tmp_path: Path, form: int) -> None:
    names = ["/".join(["d" * 200] * 3), "\udcff\n", "é"]
    layout = Layout(tmp_path / "i")
    archive = pack([file(name, b"1") for name in names], form)
    root = roots.import_oci_layout(layout.write(layout.image(archive)), "box")
    assert set(names) <= found_in(root).keys()


def test_image_and_folder_of_equal_files_are_one_root(roots: Roots, tmp_path: Path) -> None:
    root = roots.import_oci_layout(image_of(tmp_path / "i", BASE), "image")
    assert roots.import_folder(root.folder, "folder").digest == root.digest


def test_tar_of_a_layout_is_as_good_as_the_layout(roots: Roots, tmp_path: Path) -> None:
    layout = image_of(tmp_path / "i", BASE)
    by_directory = roots.import_oci_layout(layout, "directory")
    by_tar = roots.import_oci_layout(as_tar(layout), "tar")
    assert by_tar.digest == by_directory.digest


def test_record_says_which_image_it_was(roots: Roots, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "i")
    manifest = layout.image(pack(BASE), annotations={TAG: "3.11"})
    source = roots.import_oci_layout(layout.write(manifest), "box").record.source
    assert (source.image, source.tag, source.name) == (manifest["digest"], "3.11", "box")


def test_later_layer_replaces_files_folders_and_links(roots: Roots, tmp_path: Path) -> None:
    lower = [file("a", b"1"), file("b/x", b"1"), link("c", "a"), file("d", b"1")]
    upper = [file("a", b"2"), file("b", b"2"), folder("c"), link("d", "a")]
    root = roots.import_oci_layout(image_of(tmp_path / "i", lower, upper), "box")
    assert found_in(root) == {"a": "644 2", "b": "644 2", "c": "755/", "d": "-> a"}


def test_later_layer_changes_modes_and_keeps_contents(roots: Roots, tmp_path: Path) -> None:
    lower, upper = [folder("d", 0o700), file("d/a", b"1")], [folder("d", 0o2777)]
    root = roots.import_oci_layout(image_of(tmp_path / "i", lower, upper), "box")
    assert found_in(root) == {"d": "755/", "d/a": "644 1"}


def test_replaced_file_leaves_its_other_names_alone(roots: Roots, tmp_path: Path) -> None:
    lower, upper = [file("a", b"1"), hard_link("b", "a")], [file("a", b"2", mode=0o755)]
    root = roots.import_oci_layout(image_of(tmp_path / "i", lower, upper), "box")
    assert found_in(root) == {"a": "755 2", "b": "644 1"}


def test_whiteout_hides_what_lies_below(roots: Roots, tmp_path: Path) -> None:
    lower = [file("d/gone", b"1"), file("d/kept", b"1"), file("e/f/g", b"1")]
    upper = [file("d/.wh.gone"), file(".wh.e"), file(".wh.never"), file("no/.wh.where")]
    root = roots.import_oci_layout(image_of(tmp_path / "i", lower, upper), "box")
    assert found_in(root) == {"d": "755/", "d/kept": "644 1"}


@pytest.mark.parametrize("mark", ["d/.wh..wh..opq", "d/.wh.a"])
@pytest.mark.parametrize("is_first", [True, False])
def test_whiteout_spares_its_own_layer_wherever_it_stands(
    roots: Roots, tmp_path: Path, mark: str, is_first: bool
) -> None:
    upper = [file("d/a", b"2")]
    upper.insert(0 if is_first else 1, file(mark))
    root = roots.import_oci_layout(image_of(tmp_path / "i", [file("d/a", b"1")], upper), "box")
    assert found_in(root) == {"d": "755/", "d/a": "644 2"}


def test_opaque_folder_hides_all_below_it_and_nothing_beside(roots: Roots, tmp_path: Path) -> None:
    lower = [file("d/a", b"1"), file("d/e/b", b"1"), file("c", b"1")]
    upper = [file("d/new", b"2"), file("d/.wh..wh..opq"), file("d/.wh..wh.aufs")]
    root = roots.import_oci_layout(image_of(tmp_path / "i", lower, upper), "box")
    assert found_in(root) == {"c": "644 1", "d": "755/", "d/new": "644 2"}


def test_path_through_a_link_of_the_image_stays_in_the_image(roots: Roots, tmp_path: Path) -> None:
    lower = [folder("usr/lib"), link("lib", "/usr/lib"), link("up", "../../..")]
    upper = [file("lib/data", b"1"), file("up/top", b"1"), file("lib/.wh.nothing")]
    found = found_in(roots.import_oci_layout(image_of(tmp_path / "i", lower, upper), "box"))
    assert (found["usr/lib/data"], found["top"]) == ("644 1", "644 1")
    assert found["lib"] == "-> /usr/lib"


def test_what_a_jail_mounts_itself_is_no_part_of_an_image(roots: Roots, tmp_path: Path) -> None:
    extra = [folder("proc"), link("tmp", "/etc"), file("dev/null", b"x"), file("jinit", b"x")]
    through_link = [link("way", "proc"), file("way/x", b"1"), file("d/.wh.way")]
    plain = roots.import_oci_layout(image_of(tmp_path / "a", [*BASE, link("way", "proc")]), "a")
    image = image_of(tmp_path / "b", [*BASE, *extra, *through_link])
    assert roots.import_oci_layout(image, "b").digest == plain.digest


def test_image_is_chosen_by_platform_through_nested_indexes(roots: Roots, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "i")
    ours = layout.image(pack(BASE), platform={"os": "linux", "architecture": "amd64"})
    arm = layout.image(pack([file("arm")]), platform={"os": "linux", "architecture": "arm64"})
    unknown = {"os": "unknown", "architecture": "unknown"}
    attested = layout.json({"layers": []}, MANIFEST, platform=unknown)
    inner = layout.json({"manifests": [arm, attested, ours]}, INDEX)
    outer = layout.json({"manifests": [inner]}, INDEX, annotations={TAG: "1"})
    root = roots.import_oci_layout(layout.write(outer), "box", "1")
    assert (found_in(root), root.record.source.tag) == (FOUND, "1")


def test_image_is_chosen_by_tag(roots: Roots, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "i")
    one = layout.image(pack(BASE), annotations={TAG: "one"})
    two = layout.image(pack([file("two")]), annotations={TAG: "two"})
    path = layout.write(one, two)
    assert found_in(roots.import_oci_layout(path, "box", "one")) == FOUND
    with pytest.raises(UserError, match="got 2; its tags are 'one', 'two'"):
        roots.import_oci_layout(path, "box")
    with pytest.raises(UserError, match="the tag 'three', got 0"):
        roots.import_oci_layout(path, "box", "three")


def test_image_for_another_machine_is_refused(roots: Roots, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected one image for linux/amd64, got 0"):
        roots.import_oci_layout(image_of(tmp_path / "i", BASE, architecture="arm64"), "box")


@pytest.mark.parametrize("which", ["manifest", "config", "layer"])
@pytest.mark.parametrize("damage", ["changed", "cut", "missing", "a folder"])
def test_damaged_blob_is_found(roots: Roots, tmp_path: Path, which: str, damage: str) -> None:
    path = image_of(tmp_path / "i", BASE)
    blob = blob_of(path, which)
    data = blob.read_bytes()
    blob.unlink()
    if damage == "a folder":
        blob.mkdir()
    elif damage != "missing":
        blob.write_bytes(data[:-1] + (bytes([data[-1] ^ 1]) if damage == "changed" else b""))
    words = {"changed": "damaged", "cut": "bytes, got", "missing": "missing", "a folder": "no file"}
    with pytest.raises(UserError, match=words[damage]):
        roots.import_oci_layout(path, "box")
    assert roots.list_roots() == []


def blob_of(path: Path, which: str) -> Path:
    """Find a blob of the only image of a layout."""

    def blob(descriptor: dict[str, str]) -> Path:
        return path / "blobs" / "sha256" / descriptor["digest"].removeprefix("sha256:")

    (described,) = json.loads((path / "index.json").read_bytes())["manifests"]
    if which == "manifest":
        return blob(described)
    manifest = json.loads(blob(described).read_bytes())
    return blob(manifest["config"] if which == "config" else manifest["layers"][0])


def test_layer_that_is_not_what_the_image_says_is_found(roots: Roots, tmp_path: Path) -> None:
    image = image_of(tmp_path / "i", BASE, diff_ids=[sha256(b"another")])
    with pytest.raises(UserError, match="uncompressed, got sha256:"):
        roots.import_oci_layout(image, "box")


def test_layers_without_a_diff_id_each_are_refused(roots: Roots, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a diff_id for each of 1 layers"):
        roots.import_oci_layout(image_of(tmp_path / "i", BASE, diff_ids=[]), "box")


@pytest.mark.parametrize("kind", [LAYER + "+gzip+encrypted", "application/vnd.cncf.helm.chart", ""])
def test_layer_of_no_known_kind_is_refused(roots: Roots, tmp_path: Path, kind: str) -> None:
    layout = Layout(tmp_path / "i")
    archive = pack(BASE)
    config = {"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": [sha256(archive)]}}
    manifest = {"config": layout.json(config, "c"), "layers": [layout.blob(archive, kind)]}
    with pytest.raises(UserError, match="no archive that a root can be made of"):
        roots.import_oci_layout(layout.write(layout.json(manifest, MANIFEST)), "box")


@pytest.mark.parametrize("compression", ["+gzip", "+zstd"])
def test_layer_that_cannot_be_uncompressed_is_refused(
    roots: Roots, tmp_path: Path, compression: str
) -> None:
    layout = Layout(tmp_path / "i")
    config = {"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": [sha256(b"")]}}
    layers = [layout.blob(b"no such thing", LAYER + compression)]
    manifest = layout.json({"config": layout.json(config, "c"), "layers": layers}, MANIFEST)
    with pytest.raises(UserError, match="cannot be uncompressed"):
        roots.import_oci_layout(layout.write(manifest), "box")


def one_manifest(**fields: object) -> str:
    return json.dumps({"manifests": [{"mediaType": MANIFEST, **fields}]})


@pytest.mark.parametrize(
    "index",
    [
        "",
        "[]",
        '{"manifests": 3}',
        '{"manifests": [3]}',
        "[" * 100_000,
        one_manifest(digest="sha256:../../x", size=1),
        one_manifest(digest="sha256:" + "0" * 64, size=-1),
        one_manifest(digest="sha512:" + "0" * 128, size=1),
        one_manifest(digest=[], size=None),
        one_manifest(),
    ],
)
def test_senseless_index_is_refused(roots: Roots, tmp_path: Path, index: str) -> None:
    path = image_of(tmp_path / "i", BASE)
    (path / "index.json").write_text(index)
    with pytest.raises(UserError, match="was not imported"):
        roots.import_oci_layout(path, "box")


@pytest.mark.parametrize("kind", ["nothing", "an empty folder", "text"])
def test_what_is_no_layout_is_refused(roots: Roots, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "i"
    if kind == "text":
        path.write_text("text " * 1000)
    elif kind == "an empty folder":
        path.mkdir()
    with pytest.raises(UserError, match="was not imported"):
        roots.import_oci_layout(path, "box")
