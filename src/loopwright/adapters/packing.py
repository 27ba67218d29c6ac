"""The one object that a workspace is stored as: its manifest and, where all is small, the contents.

Compressed, it holds the manifest's length in eight bytes, the manifest, and the contents of a small
workspace in the order of its files. Equal workspaces give equal objects before the compression.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from loopwright.adapters.collect import MAX_FILES, MAX_PATH_BYTES
from loopwright.adapters.compression import compress, decompress
from loopwright.contracts.workspaces import EntryKind, Workspace, WorkspaceFile

PACKED_BYTES = 64 * 1024
"""Contents that are no more than this together travel with their manifest."""
_MAX_OBJECT_BYTES = MAX_FILES * (2 * MAX_PATH_BYTES + 128) + PACKED_BYTES
_LENGTH_BYTES = 8


def contents(workspace: Workspace) -> list[WorkspaceFile]:
    """List the files that have content, in order."""
    return [file for file in workspace.files if file.kind is EntryKind.FILE and file.size]


def is_packed(workspace: Workspace) -> bool:
    """Tell whether the contents of a workspace are part of its object."""
    return workspace.num_bytes <= PACKED_BYTES


def pack(workspace: Workspace, read: Callable[[WorkspaceFile], bytes]) -> bytes:
    """Make the object of a workspace; ``read`` gives contents."""
    manifest = workspace.manifest
    parts = map(read, contents(workspace)) if is_packed(workspace) else ()
    return compress(b"".join((len(manifest).to_bytes(_LENGTH_BYTES, "little"), manifest, *parts)))


def unpack(data: bytes, digest: str) -> Workspace:
    """Read the object of a workspace.

    Raises:
        ValueError: it is damaged, or another workspace's.
        ContractError: another version of the platform wrote it.
    """
    data = decompress(data, max_bytes=_MAX_OBJECT_BYTES)
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    workspace = Workspace.from_manifest(proven(data[_LENGTH_BYTES:start], digest))
    if not is_packed(workspace):
        return workspace
    return Workspace(tuple(_filled(workspace.files, memoryview(data)[start:])))


def proven(data: bytes, sha256: str) -> bytes:
    """Give data back that is what its digest says.

    Raises:
        ValueError: it is something else.
    """
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ValueError(f"expected sha256 {sha256[:12]}.., got {found[:12]}..")
    return data


def _filled(files: Iterable[WorkspaceFile], parts: memoryview) -> Iterator[WorkspaceFile]:
    """Give files their contents, which follow each other."""
    for file in files:
        if file.kind is not EntryKind.FILE:
            yield file
            continue
        data, parts = bytes(parts[: file.size]), parts[file.size :]
        yield replace(file, data=proven(data, file.sha256))
