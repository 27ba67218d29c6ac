"""The members of a tar archive, one after another, however hostile the archive is.

Only headers are read here. Whoever wants a content reads ``size`` bytes at ``offset_data``;
nothing is ever extracted by ``tarfile``, which can be led out of the folder it extracts to.
"""

import os
import re
import tarfile
from collections.abc import Iterator
from typing import BinaryIO, cast

from loopwright.contracts.failures import UserError

_MAX_HEADER_BYTES = 1 << 20
_MAX_READS_AT_END = 8
_LONG_NUMBER = re.compile(rb"[0-9]{1024}")


def members(file: BinaryIO) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of an uncompressed archive.

    Names that are not UTF-8 are surrogate-escaped. Reading elsewhere in ``file`` between two
    members is allowed.

    Raises:
        UserError: this is no tar, or one that is damaged.
    """
    try:
        yield from _read(file)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise UserError(f"it is no tar, or a damaged one: {error}") from error


def _read(file: BinaryIO) -> Iterator[tarfile.TarInfo]:
    headers = cast(BinaryIO, _Headers(file))
    length = os.fstat(file.fileno()).st_size
    with tarfile.open(
        fileobj=headers, mode="r:", encoding="utf-8", errors="surrogateescape"
    ) as archive:
        before, remembered = -1, vars(archive)["members"]
        while (member := archive.next()) is not None:
            if not before < archive.offset or member.size < 0 or archive.offset - 511 > length:
                raise tarfile.ReadError(f"the member {member.name[:200]!r} has an impossible size")
            before = archive.offset
            remembered.clear()
            yield member
        file.seek(archive.offset)
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise tarfile.ReadError(f"there is no header at byte {archive.offset}")


class _Headers:
    """What ``tarfile`` may read of a file: small pieces, and not for ever."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._reads_at_end = 0

    def read(self, size: int) -> bytes:
        """Read a header, or what belongs to one."""
        if not 0 <= size <= _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {size} bytes")
        data = self._file.read(size)
        self._reads_at_end += size > 0 and not data
        if self._reads_at_end > _MAX_READS_AT_END:
            raise tarfile.ReadError("a header that never ends")
        if _LONG_NUMBER.search(data):
            raise tarfile.ReadError("a header with an endless number")
        return data

    def seek(self, offset: int) -> int:
        """Go to a place."""
        return self._file.seek(offset)

    def tell(self) -> int:
        """Say where we are."""
        return self._file.tell()
