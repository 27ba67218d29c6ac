"""Workspaces and folders that tests of them share."""

import os
import random
import threading
from collections.abc import Iterable
from pathlib import Path

from loopwright.adapters.collect import Collected, collect, lay_out, open_folder
from loopwright.contracts.workspaces import MIB, Workspace, WorkspaceFile, written
from loopwright.core.protocols import Blobs, ObjectStore

NAMES = (
    *(b"a", b"b.txt", b"a-b", b".hidden", b"-rf", b" ", b"a\nb", b"a\\b", b"\x1b[31m", b"~"),
    *(b"\xff\xfe", "é".encode(), "e\u0301".encode(), b"n" * 255, b"...", b"%s", b"1:2 644"),
)
"""Names that a program may give its files."""


def collected(folder: Path, *, max_bytes: int = MIB, blobs: Blobs | None = None) -> Collected:
    """Collect what a folder holds."""
    with open_folder(folder) as opened:
        return collect(opened, max_bytes=max_bytes, blobs=blobs)


def laid_out(workspace: Workspace, folder: Path, *, blobs: Blobs | None = None) -> Path:
    """Lay a workspace out in a new folder."""
    folder.mkdir()
    with open_folder(folder) as opened:
        lay_out(workspace, opened, owner=os.getuid(), blobs=blobs)
    return folder


def random_workspace(seed: int) -> Workspace:
    """Make a workspace with hostile names, links, and folders that hold nothing."""
    chance = random.Random(seed)
    entries: dict[bytes, WorkspaceFile] = {}
    folders = [b""]
    for _ in range(chance.randrange(40)):
        folder = chance.choice(folders)
        path = folder + chance.choice(NAMES)
        if path in entries or path + b"/" in folders or len(path) > 1000:
            continue
        if chance.random() < 0.3:
            folders.append(path + b"/")
        else:
            entries[path] = _random_entry(chance, path)
    empty = (WorkspaceFile.folder(written(folder[:-1])) for folder in folders[1:])
    return Workspace.holding((*entries.values(), *empty))


def _random_entry(chance: random.Random, path: bytes) -> WorkspaceFile:
    if chance.random() < 0.2:
        climbs = b"../" * chance.randrange(path.count(b"/") + 1)
        return WorkspaceFile.link(written(path), written(climbs + chance.choice(NAMES)))
    data = chance.randbytes(chance.choice((0, 1, chance.randrange(1, 2000))))
    return WorkspaceFile(written(path), data, executable=chance.random() < 0.3)


class DirectoryStore(ObjectStore):
    """A store that several processes share."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        unfinished.write_bytes(data)
        unfinished.replace(path)

    def get(self, key: str) -> bytes:
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError as error:
            raise KeyError(key) from error

    def list_keys(self, prefix: str) -> list[str]:
        raise NotImplementedError

    def list_folders(self, prefix: str) -> list[str]:
        raise NotImplementedError

    def exists(self, key: str) -> bool:
        return self._path(key).exists()

    def delete(self, keys: Iterable[str]) -> None:
        raise NotImplementedError

    def _path(self, key: str) -> Path:
        return self._root / key.replace("/", "_")
