"""Root file systems and package folders for jails: named, read-only, and named by their content.

A root stands in ``folder/DIGEST/tree``. Its digest is the sha256 of a canonical manifest (paths,
kinds, modes, sizes, contents, targets), so equal files have it on every host, whenever, in whatever
order and from wherever they were imported. Everything belongs to root, nobody else may write,
set-id bits and extended attributes are dropped, devices, pipes and sockets left out.

A jail mounts a root under its own layer of mount points and helpers (``adapters/jail_files.py``):
what that layer has at the top, ``JAIL_OWN``, is no part of a root. An image is one tree, with
``/usr`` in it, and ``/bin`` and ``/lib`` of its own or as links into ``/usr``; nothing of the host
shows through it.

Folders of packages are mounted at ``/packages/`` and the first 12 digits of their digest.
"""

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.byte_code import BYTE_CODE, compile_packages
from loopwright.adapters.file_tree import Caps, FileTree, Parts, Report
from loopwright.adapters.oci_blobs import Layout
from loopwright.adapters.oci_images import find_image
from loopwright.adapters.oci_layers import apply_layer, uncompressed
from loopwright.adapters.root_store import (
    Root,
    RootKind,
    RootRecord,
    RootSource,
    RootStore,
    SkippedEntry,
    check_name,
)
from loopwright.adapters.tree_copies import Selection, copy_folder
from loopwright.adapters.tree_manifest import Manifest, build_manifest, forget_times
from loopwright.contracts.failures import SandboxUnavailable, UserError
from loopwright.contracts.workspaces import raw

JAIL_OWN = (b"proc", b"dev", b"tmp", b"workspace", b"packages", b"jinit", b"jstrict.so")
"""What the jail itself has below ``/``, whatever the root."""
_HEADS = {RootKind.ROOT: b"", RootKind.PACKAGES: b"packages\n"}
"""First line of a manifest, so that equal files of two kinds are two roots."""
MAX_BYTES = 32 << 30
MAX_ENTRIES = 1_000_000


class Roots(RootStore):
    """The roots of this host, below one folder.

    Example:
        ``Roots(Path("/var/lib/loopwright/roots")).import_folder(Path("rootfs"), "debian").digest``
    """

    def __init__(
        self, folder: Path, *, max_bytes: int = MAX_BYTES, max_entries: int = MAX_ENTRIES
    ) -> None:
        """Remember where; nothing is touched. The caps are for one root."""
        super().__init__(folder)
        self._max_bytes, self._max_entries = max_bytes, max_entries

    def import_folder(self, path: Path, name: str) -> Root:
        """Import a directory as a root file system.

        Raises:
            UserError: it is no directory, is empty, or exceeds the caps.
            SandboxUnavailable: it cannot be read or kept.
        """
        _check_folder(path)
        with self._import(path, name) as making:
            copy_folder(path, making.tree, making.report, Selection(_is_of_root))
            source = RootSource(path=str(path), name=name)
            return self._finish(making, RootKind.ROOT, source)

    def import_packages(self, path: Path, name: str) -> Root:
        """Import a folder that ``pip install --target`` filled.

        Modes become 755 and 644, and byte code is made anew, so that the digest says which packages
        these are and nothing of where and when they were installed.

        Raises:
            UserError, SandboxUnavailable: as for directories.
        """
        _check_folder(path)
        with self._import(path, name) as making:
            copy_folder(path, making.tree, making.report, Selection(_is_no_byte_code, _plain_mode))
            source = RootSource(path=str(path), name=name)
            return self._finish(making, RootKind.PACKAGES, source)

    def import_oci_layout(self, path: Path, name: str, tag: str | None = None) -> Root:
        """Import an image for this platform from an OCI image layout, a directory or a tar of one.

        Raises:
            UserError: there is no such image, or it is damaged or hostile, or exceeds the caps.
            SandboxUnavailable: it cannot be read or kept.
        """
        with self._import(path, name) as making:
            layout = Layout(path)
            image = find_image(layout, tag)
            caps = Caps(self._max_bytes, self._max_entries)
            for layer in image.layers:
                try:
                    with uncompressed(layout, layer, making.folder, caps) as archive:
                        apply_layer(archive, making.tree, making.report)
                except UserError as error:
                    raise UserError(f"layer {layer.name}: {error}") from error
            for own in JAIL_OWN:
                making.tree.remove((own,))
            source = RootSource(path=str(path), name=name, image=image.digest, tag=image.tag)
            return self._finish(making, RootKind.ROOT, source)

    @contextmanager
    def _import(self, path: Path, name: str) -> Iterator["_Making"]:
        """Give a tree to fill; every failure says what was not imported."""
        check_name(name)
        try:
            with self.making() as folder:
                (folder / "tree").mkdir()
                tree = FileTree(folder / "tree", Caps(self._max_bytes, self._max_entries))
                try:
                    yield _Making(folder, tree, Report())
                finally:
                    tree.close()
        except UserError as error:
            raise UserError(f"{path} was not imported: {error}") from error
        except OSError as error:
            raise SandboxUnavailable(
                f"{path} was not imported into {self.folder}: {error}"
            ) from error

    def _finish(self, making: "_Making", kind: RootKind, source: RootSource) -> Root:
        manifest = build_manifest(making.tree.root, making.tree.sha256)
        if not manifest.num_entries:
            raise UserError("it holds nothing that a jail could use")
        data = _HEADS[kind] + manifest.data
        digest = hashlib.sha256(data).hexdigest()
        if kind is RootKind.PACKAGES:
            compile_packages(making.folder / "tree", digest)
        forget_times(making.tree.root)
        (making.folder / "manifest").write_bytes(data)
        record = _record(making.report, manifest, kind, source)
        (making.folder / "root.json").write_text(record.model_dump_json())
        return self.publish(making.folder, digest=digest, name=source.name)


@dataclass(frozen=True, slots=True)
class _Making:
    folder: Path
    tree: FileTree
    report: Report


def _record(report: Report, manifest: Manifest, kind: RootKind, source: RootSource) -> RootRecord:
    return RootRecord(
        kind=kind,
        source=source,
        num_entries=manifest.num_entries,
        num_bytes=manifest.num_bytes,
        num_skipped=report.num_skipped,
        skipped=tuple(
            SkippedEntry(path=_printable(entry.path), reason=entry.reason)
            for entry in report.skipped
        ),
    )


def _printable(path: str) -> str:
    return raw(path).decode("utf-8", "backslashreplace")


def _check_folder(path: Path) -> None:
    if not path.is_dir():
        raise UserError(f"{path} was not imported: expected a directory, and it is none")


def _is_of_root(path: Parts) -> bool:
    return path not in {(own,) for own in JAIL_OWN}


def _is_no_byte_code(path: Parts) -> bool:
    return path[-1] != BYTE_CODE


def _plain_mode(mode: int) -> int:
    return 0o755 if stat.S_ISDIR(mode) or mode & 0o111 else 0o644
