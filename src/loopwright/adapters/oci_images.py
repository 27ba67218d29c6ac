"""Finds the image for jails in an OCI image layout: one tag, Linux on x86-64.

https://github.com/opencontainers/image-spec/blob/main/image-index.md
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loopwright.adapters.oci_blobs import Layout

_INDEXES = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
}
_MANIFESTS = {
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
}
_TAG = "org.opencontainers.image.ref.name"
_OS, _ARCHITECTURE = "linux", "amd64"
_PLATFORM = f"{_OS}/{_ARCHITECTURE}"
_MAX_INDEXES = 100
"""Indexes in one another or side by side."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of an image."""

    descriptor: dict[str, Any]
    """Names the blob, compressed or not, and its media type."""
    diff_id: str
    """``sha256:`` and digest of the uncompressed archive."""

    @property
    def name(self) -> str:
        """The digest of the blob, as the image has it."""
        return str(self.descriptor.get("digest"))


@dataclass(frozen=True, slots=True)
class Image:
    """What of an image a root is made of."""

    digest: str
    """``sha256:`` and digest of its manifest."""
    tag: str
    """As the layout has it; empty for none."""
    layers: tuple[Layer, ...]
    """The lowest first."""


def find_image(layout: Layout, tag: str | None) -> Image:
    """Choose the image for this platform, by its tag where there are several.

    Raises:
        UserError: there is none, or more than one; or what describes it is damaged.
    """
    found = list(_Search(layout).manifests(layout.read_json("index.json"), ""))
    tagged = [pair for pair in found if tag is None or pair[1] == tag]
    distinct = {str(descriptor["digest"]): (descriptor, name) for descriptor, name in tagged}
    if len(distinct) != 1:
        tags = ", ".join(sorted({repr(name) for _, name in found if name})) or "none"
        asked = "" if tag is None else f" with the tag {tag!r}"
        raise layout.problem(
            f"expected one image for {_PLATFORM}{asked}, got {len(distinct)}; "
            f"its tags are {tags}: name one with --tag"
        )
    return _read_image(layout, *distinct.popitem()[1])


@dataclass(slots=True)
class _Search:
    layout: Layout
    num_indexes: int = 0

    def manifests(
        self, index: dict[str, Any], tag_above: str
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the manifests for this platform, with their tags, also of indexes in the index."""
        self.num_indexes += 1
        if self.num_indexes > _MAX_INDEXES:
            raise self.layout.problem(f"it has more than {_MAX_INDEXES} indexes")
        for descriptor in _objects(self.layout, index, "manifests"):
            annotations = descriptor.get("annotations")
            named = annotations.get(_TAG) if isinstance(annotations, dict) else None
            tag = named if isinstance(named, str) else tag_above
            kind = descriptor.get("mediaType")
            if kind in _INDEXES:
                yield from self.manifests(self.layout.read_object(descriptor), tag)
            elif kind in _MANIFESTS and self._is_for_us(descriptor):
                yield descriptor, tag

    def _is_for_us(self, descriptor: dict[str, Any]) -> bool:
        platform = descriptor.get("platform")
        if platform is None:
            manifest = self.layout.read_object(descriptor)
            platform = self.layout.read_object(manifest.get("config"))
        if not isinstance(platform, dict):
            return False
        return (platform.get("os"), platform.get("architecture")) == (_OS, _ARCHITECTURE)


def _read_image(layout: Layout, descriptor: dict[str, Any], tag: str) -> Image:
    manifest = layout.read_object(descriptor)
    blobs = _objects(layout, manifest, "layers")
    rootfs = layout.read_object(manifest.get("config")).get("rootfs")
    diff_ids = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
    if not isinstance(diff_ids, list) or len(diff_ids) != len(blobs):
        raise layout.problem(
            f"image {descriptor['digest']}: expected a diff_id for each of {len(blobs)} layers, "
            f"got {diff_ids!r:.200}"
        )
    layers = tuple(Layer(blob, str(diff_id)) for blob, diff_id in zip(blobs, diff_ids, strict=True))
    return Image(str(descriptor["digest"]), tag, layers)


def _objects(layout: Layout, parent: dict[str, Any], field: str) -> list[dict[str, Any]]:
    found = parent.get(field)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise layout.problem(f"expected a list of objects as {field}, got {found!r:.200}")
    return found
