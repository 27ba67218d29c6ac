"""Seeds derived from names, equal on every host and in every replay."""

import hashlib


def derive(*parts: str | int) -> int:
    """Derive a seed in ``[0, 2**31)`` from a sequence of names and numbers."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1
