"""Compression of what is stored: zstd at its fastest level.

Its bytes may differ from version to version, so digests are always of what is not compressed.
"""

import threading

import zstandard

_LEVEL = 1


class _Codecs(threading.local):
    """A compressor and a decompressor of each thread's own; they are costly to make."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_codecs = _Codecs()


def compress(data: bytes) -> bytes:
    """Compress ``data``; its size is written down with it."""
    return _codecs.compressor.compress(data)


def decompress(data: bytes, *, max_bytes: int) -> bytes:
    """Give what was compressed.

    Raises:
        ValueError: it is damaged, or more than ``max_bytes``.
    """
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= max_bytes:
            raise ValueError(f"expected at most {max_bytes} bytes, got {size}")
        return _codecs.decompressor.decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
