"""Files of an OCI image layout, in a directory or in a tar of one, each checked before it is used.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import hashlib
import json
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from loopwright.adapters.tar_members import members
from loopwright.contracts.failures import UserError

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MAX_JSON_BYTES = 4 << 20
_MAX_FILES = 100_000
_CHUNK_BYTES = 1 << 20


class Layout:
    """The files of one layout."""

    def __init__(self, path: Path) -> None:
        """Look at what is there.

        Raises:
            UserError: it is neither a directory nor a tar.
        """
        self.path = path
        self._places: dict[str, tuple[int, int]] | None = None
        if not path.is_dir():
            self._places = self._list_tar()

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one of the layout's own files, which have no digest.

        Raises:
            UserError: it is missing, too large, or no JSON object.
        """
        with self._open(name) as (file, size):
            return self._parse(file, size, name)

    def read_object(self, descriptor: Any) -> dict[str, Any]:
        """Read the JSON object that a descriptor names.

        Raises:
            UserError: as for blobs, or it is no JSON object.
        """
        with self.open_blob(descriptor) as file:
            size = int(descriptor["size"])
            return self._parse(file, size, f"blob {descriptor['digest']}")

    @contextmanager
    def open_blob(self, descriptor: Any) -> Iterator[BinaryIO]:
        """Open the blob that a descriptor names, once its size and sha256 are as they should be.

        Raises:
            UserError: it is missing or damaged, or the descriptor is none.
        """
        digest, size = self._read_descriptor(descriptor)
        with self._open(f"blobs/sha256/{digest}") as (file, found):
            if found != size:
                raise self.problem(f"blob sha256:{digest}: expected {size} bytes, got {found}")
            begin = file.tell()
            actual = _sha256(file, size)
            if actual != digest:
                raise self.problem(
                    f"blob sha256:{digest} is damaged: its content has sha256:{actual}; "
                    "export the image again"
                )
            file.seek(begin)
            yield file

    def problem(self, text: str) -> UserError:
        """Say what is wrong with this layout."""
        return UserError(text)

    def _parse(self, file: BinaryIO, size: int, name: str) -> dict[str, Any]:
        if size > _MAX_JSON_BYTES:
            raise self.problem(f"{name} has {size} bytes, more than {_MAX_JSON_BYTES}")
        try:
            found = json.loads(file.read(size))
        except (ValueError, RecursionError) as error:
            raise self.problem(f"{name} is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise self.problem(f"{name}: expected a JSON object, got {type(found).__name__}")
        return found

    def _read_descriptor(self, descriptor: Any) -> tuple[str, int]:
        fields = descriptor if isinstance(descriptor, dict) else {}
        digest, size = fields.get("digest"), fields.get("size")
        named = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
        if named is None or not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise self.problem(
                "expected a descriptor with digest sha256:... and size, "
                f"got digest {digest!r} and size {size!r}"
            )
        return named[1], size

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """Open a file, at its beginning, with its size."""
        if self._places is None:
            file, begin, size = self._open_file(self.path / name), 0, -1
        elif name in self._places:
            begin, size = self._places[name]
            file = self._open_file(self.path)
        else:
            raise self._missing(name)
        with file:
            file.seek(begin)
            yield file, size if size >= 0 else os.fstat(file.fileno()).st_size

    def _open_file(self, path: Path) -> BinaryIO:
        try:
            opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._missing(path.name) from None
        except OSError as error:
            raise self.problem(f"{path} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise self.problem(f"{path} is no file")
        return os.fdopen(opened, "rb")

    def _missing(self, name: str) -> UserError:
        if name == "index.json":
            return self.problem("expected an OCI image layout, and there is no index.json")
        return self.problem(f"{name} is missing; export the image again, with all its layers")

    def _list_tar(self) -> dict[str, tuple[int, int]]:
        places: dict[str, tuple[int, int]] = {}
        with self._open_file(self.path) as file:
            for member in members(file):
                name = member.name.removeprefix("./")
                if member.type not in tarfile.REGULAR_TYPES or member.issparse():
                    continue
                if name in places or len(places) == _MAX_FILES:
                    raise self.problem(f"the archive has {name!r} twice, or too many files")
                places[name] = (member.offset_data, member.size)
        return places


def _sha256(file: BinaryIO, size: int) -> str:
    digest = hashlib.sha256()
    while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()
