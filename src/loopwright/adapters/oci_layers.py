"""Unpacks layers of an OCI image into a tree of files.

A layer is uncompressed into a file without a name and compared with its diff_id before anything of
it is used. Its whiteouts are applied first, since they mean the layers below and never the layer
itself, wherever in the archive they stand.

https://github.com/opencontainers/image-spec/blob/main/layer.md
"""

import gzip
import hashlib
import re
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from loopwright.adapters.file_tree import Caps, FileTree, Parts, Readable, Report, split
from loopwright.adapters.oci_blobs import Layout
from loopwright.adapters.oci_images import Layer
from loopwright.adapters.tar_members import members
from loopwright.contracts.failures import UserError
from loopwright.contracts.workspaces import raw

_WHITEOUT = b".wh."
_OPAQUE = b".wh..wh..opq"
_OTHER_MARK = b".wh..wh."
"""Begins the names of what a union file system keeps for itself."""
_CHUNK_BYTES = 1 << 20
_MAX_WINDOW_BYTES = 128 << 20
_SPECIAL = {
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, zstandard.ZstdError)
"""What readers raise of a content that they cannot take."""


def _open_gzip(file: Readable) -> Readable:
    return cast(Readable, gzip.GzipFile(fileobj=cast(BinaryIO, file)))


def _open_zstd(file: Readable) -> Readable:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    return decompressor.stream_reader(cast(BinaryIO, file), read_across_frames=True)


_READERS: dict[str, Callable[[Readable], Readable]] = {
    "tar": lambda file: file,
    "gzip": _open_gzip,
    "zstd": _open_zstd,
}
_MEDIA_TYPE = re.compile(
    r"application/vnd\.(?:oci\.image\.layer(?:\.nondistributable)?\.v1"
    r"|docker\.image\.rootfs\.(?:foreign\.)?diff)\.(?:tar[.+])?(tar|gzip|zstd)"
)


@contextmanager
def uncompressed(layout: Layout, layer: Layer, folder: Path, caps: Caps) -> Iterator[BinaryIO]:
    """Give the archive of a layer, proved by its diff_id, from a nameless file in ``folder``.

    Raises:
        UserError: the blob or its content is not what the image says, or exceeds the caps.
    """
    kind = layer.descriptor.get("mediaType")
    known = _MEDIA_TYPE.fullmatch(str(kind))
    if known is None:
        raise layout.problem(f"{kind!r} is no archive that a root can be made of")
    with layout.open_blob(layer.descriptor) as blob, tempfile.TemporaryFile(dir=folder) as plain:
        try:
            part = _Part(blob, int(layer.descriptor["size"]))
            digest = _copy(_READERS[known[1]](part), plain, caps)
        except _DAMAGED as error:
            raise layout.problem(f"it cannot be uncompressed: {error}") from error
        if layer.diff_id != f"sha256:{digest}":
            raise layout.problem(
                f"expected {layer.diff_id} uncompressed, got sha256:{digest}; "
                "export the image again"
            )
        plain.seek(0)
        yield cast(BinaryIO, plain)


def apply_layer(archive: BinaryIO, tree: FileTree, report: Report) -> None:
    """Change a tree as a layer says; what is no file, folder or link is skipped and reported.

    Raises:
        UserError: a member has an impossible path, links to nothing, or exceeds the caps.
    """
    for member in members(archive):
        _apply_whiteout(_path(member), tree)
    archive.seek(0)
    target = _Target(archive, tree, report)
    for member in members(archive):
        path = _path(member)
        if not path or not path[-1].startswith(_WHITEOUT):
            _apply_member(member, path, target)


def _path(member: tarfile.TarInfo) -> Parts:
    return split(raw(member.name))


def _apply_whiteout(path: Parts, tree: FileTree) -> None:
    name = path[-1] if path else b""
    if name == _OPAQUE:
        tree.empty(path[:-1])
    elif name.startswith(_WHITEOUT) and not name.startswith(_OTHER_MARK):
        hidden = name.removeprefix(_WHITEOUT)
        if hidden in (b"", b".", b".."):
            raise UserError(f"the whiteout {name.decode()!r} names no file")
        tree.remove((*path[:-1], hidden))


@dataclass(frozen=True, slots=True)
class _Target:
    archive: BinaryIO
    tree: FileTree
    report: Report


def _apply_member(member: tarfile.TarInfo, path: Parts, to: _Target) -> None:
    if member.isdir():
        to.tree.write_folder(path, member.mode)
    elif member.issym():
        to.tree.write_link(path, raw(member.linkname))
    elif member.islnk():
        to.tree.write_hard_link(path, split(raw(member.linkname)))
    elif member.issparse():
        raise UserError(f"{member.name!r} is a sparse file; pack the layer without them")
    elif member.isreg():
        to.archive.seek(member.offset_data)
        to.tree.write_file(path, to.archive, size=member.size, mode=member.mode)
    else:
        to.tree.remove(path)
        to.report.skip(b"/".join(path), _SPECIAL.get(member.type, "of no known kind"))


class _Part:
    """The first bytes of what is left of a file, as a file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes, all by default."""
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data


def _copy(content: Readable, plain: IO[bytes], caps: Caps) -> str:
    digest = hashlib.sha256()
    while chunk := content.read(_CHUNK_BYTES):
        caps.take_bytes(len(chunk))
        digest.update(chunk)
        plain.write(chunk)
    return digest.hexdigest()
