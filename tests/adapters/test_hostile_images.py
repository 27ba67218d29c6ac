"""Layers that are made to harm: none writes outside, takes the host's room, or lasts for ever."""

import gzip
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters.roots import Roots
from loopwright.contracts.failures import UserError
from tests.adapters.images import (
    COMPRESS,
    LAYER,
    MANIFEST,
    Layout,
    Member,
    as_tar,
    file,
    folder,
    hard_link,
    image_of,
    link,
    member,
    pack,
    sha256,
)
from tests.adapters.stores import found_in, reachable_folder

PLAIN = file("plain", b"1")


@pytest.fixture
def outside() -> Iterator[Path]:
    """Give the folder that the store is in; a file beside the store must stay as it is."""
    with reachable_folder() as parent:
        (parent / "victim").write_bytes(b"unharmed")
        yield parent


@pytest.fixture
def roots(outside: Path) -> Roots:
    return Roots(outside / "roots", max_bytes=1 << 20, max_entries=1000)


def assert_nothing_happened(outside: Path) -> None:
    assert {path.name for path in outside.iterdir()} <= {"victim", "roots"}
    victim = outside / "victim"
    assert (victim.read_bytes(), victim.stat().st_nlink) == (b"unharmed", 1)
    assert victim.stat().st_mode & 0o7777 == 0o644
    if (outside / "roots").exists():
        assert list((outside / "roots" / "incoming").iterdir()) == []


UP = "../" * 6
"""From a tree in the making to the folder that the store is in, and further."""


@pytest.mark.parametrize(
    "members",
    [
        [file("../victim", b"x")],
        [file(UP + "victim", b"x")],
        [file("a/../../../../victim", b"x")],
        [folder(UP + "new")],
        [link("../link", "victim")],
        [hard_link("mine", UP + "victim")],
        [file("a\0b", b"x", pax_headers={"path": "a\0b"})],
        [file("../.wh.victim")],
        [file(".wh...")],
        [file(".wh..")],
        [file(".wh.")],
        [hard_link("mine", "no/such/file")],
        [folder("d"), hard_link("mine", "d")],
        [file("d/f", b"1"), hard_link("d", "d/f")],
        [hard_link("a", "b"), hard_link("b", "a")],
        [file("f", b"1"), file("f/below", b"2")],
        [link("a", "b"), link("b", "a"), file("a/x", b"1")],
        [file("./", b"1")],
        [file("/".join(["d"] * 200), b"1")],
        [file("n" * 300, b"1")],
        [link("l", "t" * 5000)],
        [link("l", "")],
        [link("l", "t" * 300), file("l/below", b"1")],
    ],
    ids=lambda members: ascii(members[-1][0].name[:20] + " " + members[-1][0].linkname[:20]),
)
def test_impossible_member_is_refused_and_all_with_it(
    roots: Roots, outside: Path, tmp_path: Path, members: list[Member]
) -> None:
    with pytest.raises(UserError, match="layer sha256:"):
        roots.import_oci_layout(image_of(tmp_path / "i", [PLAIN, *members]), "box")
    assert_nothing_happened(outside)
    assert roots.list_roots() == []


def beyond_the_longest_path() -> list[Member]:
    """Make links whose target, written out, is longer than a path can be, and then goes up."""
    members, path, short = [], "", "abcdefghijklmnop"
    for name in short:
        members += [folder(path + "d" * 247), link(path + name, "d" * 247)]
        path += "d" * 247 + "/"
    long = "/".join(short) + "/" + "l" * 254
    return [*members, link(long, "../" * len(short)), link("escape", long + "/../../../..")]


def ways_out(victim: Path) -> dict[str, list[Member]]:
    """Give the archives that are known to lead a careless reader out of its folder."""
    parent, up = str(victim.parent), UP + "victim"
    return {
        "absolute name": [file(str(victim), b"x")],
        "absolute link": [link("l", parent), file("l/victim", b"x")],
        "relative link": [link("l", UP), file("l/victim", b"x")],
        "link to the file": [link("l", str(victim)), file("l", b"x")],
        "link by a link": [link("a", "."), link("a/b", ".."), file("a/b/victim", b"x")],
        "link below a folder": [folder("d"), link("d/l", "../" + UP), file("d/l/victim", b"x")],
        "folder over a link": [link("l", parent), folder("l", 0o777), file("l/victim", b"x")],
        "hard link by a link": [link("l", up), hard_link("h", "l"), file("h", b"x")],
        "hard link to a link": [link("l", str(victim)), hard_link("h", "l"), file("h", b"x")],
        "mode by a link": [link("l", str(victim)), folder("l", 0o777)],
        "link after the file": [file("a/b", b"1"), link("a", parent), file("a/victim", b"x")],
        "whiteout by a link": [link("l", parent), file("l/.wh.victim")],
        "opaque by a link": [link("l", parent), file("l/.wh..wh..opq")],
        "path beyond the longest": [*beyond_the_longest_path(), file("escape/victim", b"x")],
    }


@pytest.mark.parametrize("way", sorted(ways_out(Path("/"))))
@pytest.mark.parametrize("num_layers", [1, 2])
def test_no_way_leads_out_of_the_tree(
    roots: Roots, outside: Path, tmp_path: Path, way: str, num_layers: int
) -> None:
    members = ways_out(outside / "victim")[way]
    layers = [[PLAIN, *members]] if num_layers == 1 else [[PLAIN, *members[:-1]], members[-1:]]
    root = roots.import_oci_layout(image_of(tmp_path / "i", *layers), "box")
    assert_nothing_happened(outside)
    assert (root.folder / "plain").read_bytes() == b"1"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"D", b"M"])
def test_special_members_are_left_out_and_reported(
    roots: Roots, tmp_path: Path, kind: bytes
) -> None:
    members = [PLAIN, file("x", b"old"), member("x", kind, devmajor=1, devminor=5)]
    root = roots.import_oci_layout(image_of(tmp_path / "i", members), "box")
    assert found_in(root) == {"plain": "644 1"}
    assert [entry.path for entry in root.record.skipped] == ["x"]


def test_capabilities_and_set_id_bits_are_dropped(roots: Roots, tmp_path: Path) -> None:
    power = {"SCHILY.xattr.security.capability": "\1\0\0\2\0\40\0\0", "SCHILY.xattr.user.a": "b"}
    members = [file("tool", b"1", mode=0o6777, uid=1234, pax_headers=power)]
    root = roots.import_oci_layout(image_of(tmp_path / "i", members), "box")
    assert found_in(root) == {"tool": "755 1"}
    assert os.listxattr(root.folder / "tool") == []


def test_file_of_more_bytes_than_a_root_may_have_is_refused(
    roots: Roots, outside: Path, tmp_path: Path
) -> None:
    layers = [[file(f"f{number}", bytes(300_000))] for number in range(4)]
    with pytest.raises(UserError, match="more bytes"):
        roots.import_oci_layout(image_of(tmp_path / "i", *layers), "box")
    assert_nothing_happened(outside)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_more_entries_than_a_root_may_have_are_refused(
    roots: Roots, outside: Path, tmp_path: Path, num_layers: int
) -> None:
    layers = [[file(f"{layer}/{n}") for n in range(400)] for layer in range(num_layers)]
    image = image_of(tmp_path / "i", *layers)
    if num_layers == 1:
        assert roots.import_oci_layout(image, "box").record.num_entries == 401
        return
    with pytest.raises(UserError, match="more files"):
        roots.import_oci_layout(image, "box")
    assert_nothing_happened(outside)


def layout_of(path: Path, blob: bytes, plain: bytes, compression: str) -> Path:
    """Write an image whose only layer is this blob, said to be ``plain``."""
    layout = Layout(path)
    config = {"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": [sha256(plain)]}}
    layers = [layout.blob(blob, LAYER + compression)]
    manifest = {"config": layout.json(config, "c"), "layers": layers}
    return layout.write(layout.json(manifest, MANIFEST))


def test_bomb_is_stopped_at_the_cap(roots: Roots, outside: Path, tmp_path: Path) -> None:
    blob = gzip.compress(bytes(64 << 20))
    with pytest.raises(UserError, match="more bytes"):
        roots.import_oci_layout(layout_of(tmp_path / "i", blob, b"", "+gzip"), "box")
    assert_nothing_happened(outside)


@pytest.mark.parametrize("compression", ["", "+gzip", "+zstd"])
def test_layer_that_ends_early_is_found(roots: Roots, tmp_path: Path, compression: str) -> None:
    archive = pack([PLAIN])
    path = layout_of(tmp_path / "i", COMPRESS[compression](archive)[:-9], archive, compression)
    with pytest.raises(UserError, match="uncompressed"):
        roots.import_oci_layout(path, "box")


def changed(archive: bytes, at: int, data: bytes) -> bytes:
    """Write over a header and give it the checksum that it then needs."""
    begin = at // 512 * 512
    header = bytearray(archive[begin : begin + 512])
    header[at - begin : at - begin + len(data)] = data
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return archive[:begin] + bytes(header) + archive[begin + 512 :]


def pax(data: bytes) -> bytes:
    """Give a header with this extended part, and a file after it."""
    info, _ = member("x", b"x", data)
    padded = data + bytes(-len(data) % 512)
    return info.tobuf(tarfile.USTAR_FORMAT) + padded + pack([PLAIN], tarfile.USTAR_FORMAT)


def record(key: str, value: str) -> bytes:
    """Write one record of an extended header."""
    text = f" {key}={value}\n".encode()
    length = len(text)
    while len(str(length)) + len(text) != length:
        length = len(str(length)) + len(text)
    return str(length).encode() + text


USTAR = pack([PLAIN, file("second", b"22")], tarfile.USTAR_FORMAT)
NEGATIVE = b"\xff" * 8 + (-512).to_bytes(4, "big", signed=True)
"""A size below 0, as large numbers are written."""
HUGE = b"\x80" + (1 << 60).to_bytes(11, "big")
DAMAGED: dict[str, bytes] = {
    "nothing": b"",
    "no archive": b"x" * 5000,
    "header of garbage in the middle": USTAR[:1024] + b"x" * 512 + USTAR[1536:],
    "content that ends early": USTAR[:513],
    "size below 0": changed(USTAR, 124, NEGATIVE),
    "size below 0 of an unknown kind": changed(changed(USTAR, 156, b"Z"), 124, NEGATIVE),
    "size beyond the end": changed(USTAR, 124, HUGE),
    "size beyond the end, extended": pax(record("size", str(1 << 60))),
    "size below 0, extended": pax(record("size", "-1024")),
    "extended header of a gigabyte": changed(pax(b"1"), 124, b"%011o\0" % (1 << 30)),
    "extended header below 0": changed(pax(b"1"), 124, NEGATIVE),
    "endless digits": pax(b"1" * 200_000),
    "headers without a file": b"".join(pax(b"1")[:1024] for _ in range(5000)),
    "sparse file": pax(record("GNU.sparse.map", "0,1") + record("GNU.sparse.size", "1")),
    "sparse file that never ends": pax(
        record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0")
    )[:1024]
    + changed(pack([file("s", b"9" * 512)], tarfile.USTAR_FORMAT)[:1024], 0, b"s"),
    "sparse file of gaps": pax(
        record("GNU.sparse.map", "9,1,3,1,-5,2") + record("GNU.sparse.size", "1")
    ),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_archive_is_refused_and_not_cut_short(
    roots: Roots, outside: Path, tmp_path: Path, damage: str
) -> None:
    archive = DAMAGED[damage]
    with pytest.raises(UserError, match="layer sha256:"):
        roots.import_oci_layout(layout_of(tmp_path / "i", archive, archive, ""), "box")
    assert_nothing_happened(outside)


@pytest.mark.parametrize("trick", ["twice", "link for a blob", "outside"])
def test_hostile_tar_of_a_layout_is_only_looked_into(
    roots: Roots, outside: Path, tmp_path: Path, trick: str
) -> None:
    packed = as_tar(image_of(tmp_path / "i", [PLAIN]))
    extra: dict[str, Any] = {
        "twice": file("./index.json", b"{}"),
        "link for a blob": link("blobs/sha256/" + "0" * 64, str(outside / "victim")),
        "outside": file(UP + "victim", b"x"),
    }
    with tarfile.open(packed, "a") as archive:
        info, data = extra[trick]
        archive.addfile(info, io.BytesIO(data))
    if trick == "twice":
        with pytest.raises(UserError, match="twice"):
            roots.import_oci_layout(packed, "box")
    else:
        roots.import_oci_layout(packed, "box")
    assert_nothing_happened(outside)


def test_pipe_in_a_layout_does_not_block(roots: Roots, tmp_path: Path) -> None:
    path = image_of(tmp_path / "i", [PLAIN])
    (path / "index.json").unlink()
    os.mkfifo(path / "index.json")
    with pytest.raises(UserError, match="is no file"):
        roots.import_oci_layout(path, "box")
