"""OCI image layouts, made member by member, as well or as badly as a test wants them."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

Member = tuple[tarfile.TarInfo, bytes]
LAYER = "application/vnd.oci.image.layer.v1.tar"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
TAG = "org.opencontainers.image.ref.name"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "+gzip": gzip.compress,
    "+zstd": zstandard.ZstdCompressor().compress,
}


def member(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", **fields: Any) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, len(data), 0o644
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def file(name: str, data: bytes = b"", mode: int = 0o644, **fields: Any) -> Member:
    return member(name, data=data, mode=mode, **fields)


def folder(name: str, mode: int = 0o755) -> Member:
    return member(name, tarfile.DIRTYPE, mode=mode)


def link(name: str, target: str) -> Member:
    return member(name, tarfile.SYMTYPE, linkname=target)


def hard_link(name: str, target: str) -> Member:
    return member(name, tarfile.LNKTYPE, linkname=target)


def pack(members: Iterable[Member], form: int = tarfile.PAX_FORMAT) -> bytes:
    """Write an archive."""
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=form, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass
class Layout:
    """A layout directory in the making."""

    path: Path
    manifests: list[dict[str, Any]] = field(default_factory=list)

    def blob(self, data: bytes, media_type: str, **fields: Any) -> dict[str, Any]:
        """Add a blob; give its descriptor."""
        blobs = self.path / "blobs" / "sha256"
        blobs.mkdir(parents=True, exist_ok=True)
        digest = sha256(data)
        (blobs / digest.removeprefix("sha256:")).write_bytes(data)
        return {"mediaType": media_type, "digest": digest, "size": len(data), **fields}

    def json(self, value: Any, media_type: str, **fields: Any) -> dict[str, Any]:
        return self.blob(json.dumps(value).encode(), media_type, **fields)

    def image(
        self,
        *archives: bytes,
        compression: str = "+gzip",
        architecture: str = "amd64",
        diff_ids: list[str] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Add an image of these uncompressed layers; give the descriptor of its manifest."""
        compress = COMPRESS[compression]
        layers = [self.blob(compress(archive), LAYER + compression) for archive in archives]
        known = [sha256(archive) for archive in archives] if diff_ids is None else diff_ids
        config = {"os": "linux", "architecture": architecture, "rootfs": {"diff_ids": known}}
        described = self.json(config, "application/vnd.oci.image.config.v1+json")
        return self.json({"config": described, "layers": layers}, MANIFEST, **fields)

    def write(self, *manifests: dict[str, Any]) -> Path:
        """Write the index; give the layout's path."""
        self.path.mkdir(exist_ok=True)
        (self.path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (self.path / "index.json").write_text(json.dumps({"manifests": manifests}))
        return self.path


def image_of(path: Path, *layers: Iterable[Member], **fields: Any) -> Path:
    """Write a layout of one image."""
    layout = Layout(path)
    return layout.write(layout.image(*map(pack, layers), **fields))


def as_tar(layout: Path) -> Path:
    """Pack a layout into one archive."""
    packed = layout.with_suffix(".tar")
    with tarfile.open(packed, "w") as archive:
        archive.add(layout, arcname=".")
    return packed
