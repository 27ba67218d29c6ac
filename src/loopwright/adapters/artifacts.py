"""Artifacts: content that carries its digest to the store and proves it on the way back."""

import hashlib

from loopwright.contracts.artifacts import ArtifactKind, ArtifactRef
from loopwright.contracts.failures import ArtifactDamaged
from loopwright.contracts.ids import artifact_key
from loopwright.core.protocols import ObjectStore

_READ_ATTEMPTS = 3


def keep(
    store: ObjectStore, data: bytes, *, prefix: str, name: str, suffix: str, kind: ArtifactKind
) -> ArtifactRef:
    """Store ``data`` under a key that ends in its digest, and give the reference.

    Raises:
        StoreError: the store could not take it.
    """
    digest = hashlib.sha256(data).hexdigest()
    key = artifact_key(prefix, name, digest, suffix)
    store.put(key, data)
    return ArtifactRef(key=key, sha256=digest, num_bytes=len(data), kind=kind)


def fetch(store: ObjectStore, ref: ArtifactRef) -> bytes:
    """Fetch an artifact and check that it is what was written.

    Raises:
        ArtifactDamaged: it is missing, or three reads gave another content.
        StoreError: the store could not give it.
    """
    data = b""
    for _ in range(_READ_ATTEMPTS):
        try:
            data = store.get(ref.key)
        except KeyError as error:
            raise ArtifactDamaged(
                f"artifact {ref.key} is not in the store; {ArtifactDamaged.advice}"
            ) from error
        if len(data) == ref.num_bytes and hashlib.sha256(data).hexdigest() == ref.sha256:
            return data
    raise ArtifactDamaged(
        f"artifact {ref.key} is damaged: expected {ref.num_bytes} bytes of sha256 "
        f"{ref.sha256[:12]}.., got {len(data)} bytes of {hashlib.sha256(data).hexdigest()[:12]}..; "
        f"{ArtifactDamaged.advice}"
    )
