"""Root file systems and package folders, imported from folders of this host."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.adapters.root_store import RootKind
from loopwright.adapters.roots import Roots
from loopwright.contracts.failures import RootMissing, UserError
from tests.adapters.stores import found_in, reachable_folder


@pytest.fixture
def store() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder / "roots"


@pytest.fixture
def roots(store: Path) -> Roots:
    return Roots(store)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return fill(tmp_path / "source")


def fill(folder: Path, *, is_reversed: bool = False) -> Path:
    """Write a small root file system, in one order or the other."""
    files = {"usr/bin/tool": b"#!tool", "etc/name": b"box\n", "usr/lib/data": b"\x00\xff"}
    for name, data in sorted(files.items(), reverse=is_reversed):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "usr/bin/tool").chmod(0o755)
    (folder / "bin").symlink_to("usr/bin")
    (folder / "etc/absolute").symlink_to("/etc/shadow")
    return folder


def names_below(store: Path) -> list[str]:
    """List what the store holds, whole or half."""
    digests = [path.name for path in store.iterdir() if path.name not in ("incoming", "names")]
    return digests + [path.name for path in (store / "incoming").iterdir()]


def test_folder_becomes_a_root_of_its_files_and_links(roots: Roots, source: Path) -> None:
    root = roots.import_folder(source, "box")
    assert found_in(root) == {
        "bin": "-> usr/bin",
        "etc": "755/",
        "etc/absolute": "-> /etc/shadow",
        "etc/name": "644 box\n",
        "usr": "755/",
        "usr/bin": "755/",
        "usr/bin/tool": "755 #!tool",
        "usr/lib": "755/",
        "usr/lib/data": "644 \x00\xff",
    }
    assert (root.kind, root.names, root.record.num_bytes) == (RootKind.ROOT, ("box",), 12)
    assert roots.get("box") == roots.get(root.digest) == root


def test_equal_folders_are_one_root_whatever_their_times_and_order(
    roots: Roots, source: Path, tmp_path: Path
) -> None:
    other = fill(tmp_path / "other", is_reversed=True)
    os.utime(other / "etc/name", (1, 1))
    first = roots.import_folder(source, "first")
    assert roots.import_folder(other, "second").digest == first.digest
    assert [root.names for root in roots.list_roots()] == [("first", "second")]
    assert names_below(roots.folder) == [first.digest]


@pytest.mark.parametrize("change", ["content", "mode", "target", "name", "empty folder"])
def test_every_difference_is_another_digest(roots: Roots, source: Path, change: str) -> None:
    before = roots.import_folder(source, "before").digest
    if change == "content":
        (source / "etc/name").write_bytes(b"bux\n")
    elif change == "mode":
        (source / "etc/name").chmod(0o755)
    elif change == "target":
        (source / "bin").unlink()
        (source / "bin").symlink_to("usr/sbin")
    elif change == "name":
        (source / "etc/name").rename(source / "etc/nome")
    else:
        (source / "srv").mkdir()
    assert roots.import_folder(source, "after").digest != before


def test_digest_is_the_one_worked_out_by_hand(roots: Roots, tmp_path: Path) -> None:
    (tmp_path / "r" / "d").mkdir(parents=True, mode=0o755)
    (tmp_path / "r" / "d" / "f").write_bytes(b"hi")
    (tmp_path / "r" / "l").symlink_to("d/f")
    # printf '1:d folder 755\n3:d/f file 644 2 %s\n1:l link 3:d/f\n' $(printf hi | sha256sum) | ...
    manifest = (
        b"1:d folder 755\n"
        b"3:d/f file 644 2 8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4\n"
        b"1:l link 3:d/f\n"
    )
    root = roots.import_folder(tmp_path / "r", "r")
    assert (root.folder.parent / "manifest").read_bytes() == manifest


def test_what_gives_power_is_dropped(roots: Roots, source: Path) -> None:
    (source / "usr/bin/tool").chmod(0o6777)
    (source / "usr/lib").chmod(0o7777)
    (source / "etc/name").chmod(0o000)
    found = found_in(roots.import_folder(source, "box"))
    assert (found["usr/bin/tool"], found["usr/lib"]) == ("755 #!tool", "755/")
    assert found["etc/name"] == "400 box\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make devices and give files away")
def test_owners_do_not_count_and_devices_are_left_out(roots: Roots, source: Path) -> None:
    before = roots.import_folder(source, "before").digest
    os.chown(source / "etc/name", 1234, 1234)
    os.mknod(source / "usr/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    root = roots.import_folder(source, "after")
    assert root.digest == before
    assert (root.folder / "etc/name").stat().st_uid == 0


def test_pipes_and_sockets_are_left_out_and_reported(
    roots: Roots, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(source / "etc/pipe")
    monkeypatch.chdir(source)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        root = roots.import_folder(source, "box")
    told = {(entry.path, entry.reason) for entry in root.record.skipped}
    assert told == {("etc/pipe", "a pipe"), ("socket", "a socket")}
    assert {"etc/pipe", "socket"}.isdisjoint(found_in(root))


def test_what_a_jail_mounts_itself_is_no_part_of_a_root(roots: Roots, source: Path) -> None:
    before = roots.import_folder(source, "before").digest
    for name in ("proc", "dev", "tmp"):
        (source / name).mkdir()
    (source / "dev/null").write_text("no device")
    (source / "workspace").symlink_to("/")
    (source / "jinit").write_text("#!/bin/sh\n")
    assert roots.import_folder(source, "after").digest == before


def test_names_of_any_bytes_are_kept(roots: Roots, source: Path) -> None:
    odd = [b"new\nline", b"\xff\xfe", b"-rf *", b"a:b,c\\d", "é".encode(), "é".encode()]
    for name in odd:
        (source / os.fsdecode(name)).write_bytes(name)
    root = roots.import_folder(source, "box")
    assert set(odd) <= {os.fsencode(name) for name in os.listdir(root.folder)}  # noqa: PTH208


def test_python_sources_have_the_time_that_their_byte_code_expects(
    roots: Roots, source: Path
) -> None:
    module = source / "usr/lib/module.py"
    module.write_text("x = 1\n")
    os.utime(module, (1_234_567, 1_234_567))
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(module)], check=True)
    root = roots.import_folder(source, "box")
    assert (root.folder / "usr/lib/module.py").stat().st_mtime == 1_234_567
    assert (root.folder / "usr/bin/tool").stat().st_mtime == 0


def test_packages_are_the_same_wherever_and_however_they_were_installed(
    roots: Roots, tmp_path: Path
) -> None:
    for name, mode in (("one", 0o600), ("two", 0o664)):
        package = tmp_path / name / "package"
        package.mkdir(parents=True, mode=0o700)
        (package / "__init__.py").write_text("x = 1\n")
        (package / "__init__.py").chmod(mode)
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(package)], check=True)
    one = roots.import_packages(tmp_path / "one", "one")
    assert roots.import_packages(tmp_path / "two", "two").digest == one.digest
    assert one.kind is RootKind.PACKAGES
    assert found_in(one)["package/__init__.py"] == "644 x = 1\n"


def test_equal_files_of_two_kinds_are_two_roots(roots: Roots, source: Path) -> None:
    root, packages = roots.import_folder(source, "root"), roots.import_packages(source, "packages")
    assert root.digest != packages.digest
    assert (root.kind, packages.kind) == (RootKind.ROOT, RootKind.PACKAGES)


def test_byte_code_of_packages_names_the_place_where_jails_see_them(
    roots: Roots, tmp_path: Path
) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/module.py").write_text("def f(): pass\n")
    root = roots.import_packages(tmp_path / "p", "p")
    (compiled,) = (root.folder / "__pycache__").glob("module.*.pyc")
    assert f"/packages/{root.digest[:12]}/module.py".encode() in compiled.read_bytes()


def test_byte_code_is_written_through_no_link_and_made_of_none(
    roots: Roots, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("x = 'secret'\n")
    package = tmp_path / "p"
    package.mkdir()
    (package / "module.py").write_text("x = 1\n")
    (package / "__pycache__").symlink_to(outside)
    (package / "stolen.py").symlink_to(outside / "secret.py")
    (package / "folder").symlink_to(outside)
    root = roots.import_packages(package, "p")
    assert [path.name for path in outside.iterdir()] == ["secret.py"]
    assert not list((root.folder / "__pycache__").glob("stolen*"))


@pytest.mark.parametrize("name", ["", "a/b", "..", ".x", "a" * 65, "0" * 64, "a b", "ä"])
def test_impossible_names_are_refused(roots: Roots, source: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot name a root"):
        roots.import_folder(source, name)
    assert not roots.folder.exists()


@pytest.mark.parametrize("asked", ["nothing", "0" * 64, "..", "names", ""])
def test_missing_root_is_a_typed_error(roots: Roots, source: Path, asked: str) -> None:
    roots.import_folder(source, "box")
    with pytest.raises(RootMissing, match="there is no root"):
        roots.get(asked)


def test_name_moves_to_the_newest_import(roots: Roots, source: Path) -> None:
    old = roots.import_folder(source, "box").digest
    (source / "more").write_text("1")
    new = roots.import_folder(source, "box").digest
    assert roots.get("box").digest == new
    assert roots.get(old).names == ()


def test_root_goes_with_its_last_name(roots: Roots, source: Path) -> None:
    digest = roots.import_folder(source, "one").digest
    roots.import_folder(source, "two")
    roots.remove("one")
    assert roots.get(digest).names == ("two",)
    roots.remove("two")
    assert roots.list_roots() == []
    assert names_below(roots.folder) == []


def test_removing_a_digest_removes_all_its_names(roots: Roots, source: Path) -> None:
    digest = roots.import_folder(source, "one").digest
    roots.import_folder(source, "two")
    roots.remove(digest)
    for name in ("one", "two", digest):
        with pytest.raises(RootMissing):
            roots.get(name)


def test_root_in_use_is_not_removed(roots: Roots, source: Path) -> None:
    roots.import_folder(source, "box")
    with roots.hold("box"), pytest.raises(UserError, match="in use"):
        roots.remove("box")
    roots.remove("box")


@pytest.mark.parametrize(
    ("caps", "word"), [({"max_bytes": 11}, "bytes"), ({"max_entries": 8}, "files")]
)
def test_folder_over_the_caps_is_refused_whole(
    store: Path, source: Path, caps: dict[str, int], word: str
) -> None:
    roots = Roots(store, **caps)
    with pytest.raises(UserError, match=f"more {word}"):
        roots.import_folder(source, "box")
    assert names_below(store) == []
    assert roots.list_roots() == []


def test_folder_at_the_caps_is_imported(store: Path, source: Path) -> None:
    assert Roots(store, max_bytes=12, max_entries=9).import_folder(source, "box").record


def test_folders_in_one_another_without_end_are_refused(roots: Roots, source: Path) -> None:
    (source / "/".join(["d"] * 200)).mkdir(parents=True)
    with pytest.raises(UserError, match="in one another"):
        roots.import_folder(source, "box")
    assert names_below(roots.folder) == []


def test_folder_that_holds_the_store_is_imported_without_itself(store: Path) -> None:
    fill(store.parent)
    root = Roots(store).import_folder(store.parent, "box")
    assert not [path for path in found_in(root) if path.endswith("/tree")]
    assert "the root in the making" in [entry.reason for entry in root.record.skipped]


@pytest.mark.parametrize("kind", ["nothing", "a file", "empty"])
def test_what_is_no_folder_of_files_is_refused(roots: Roots, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "source"
    if kind == "a file":
        path.write_text("1")
    elif kind == "empty":
        path.mkdir()
    with pytest.raises(UserError, match="was not imported"):
        roots.import_folder(path, "box")


def test_store_that_jails_cannot_reach_is_refused(store: Path, source: Path) -> None:
    store.parent.chmod(0o700)
    with pytest.raises(UserError, match=r"cannot reach .* mode 700"):
        Roots(store).import_folder(source, "box")


def test_store_that_no_overlay_can_name_is_refused(store: Path, source: Path) -> None:
    with pytest.raises(UserError, match="without ':'"):
        Roots(store.parent / "a:b").import_folder(source, "box")


def test_import_that_was_killed_leaves_nothing_after_the_next(roots: Roots, source: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom loopwright.adapters.roots import Roots\n"
        "with Roots(Path(sys.argv[1])).making() as folder:\n"
        "    (folder / 'half').mkdir()\n"
        "    print('made', flush=True)\n"
        "    os.read(0, 1)\n"
    )
    words = [sys.executable, "-c", code, str(roots.folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as maker:
        assert maker.stdout is not None
        assert maker.stdout.readline() == b"made\n"
        digest = roots.import_folder(source, "while-it-lives").digest
        assert len(names_below(roots.folder)) == 2
        maker.kill()
    roots.import_folder(source, "afterwards")
    assert names_below(roots.folder) == [digest]
