"""Workspaces, commands run on them in the sandbox, and what came out."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from pydantic import ConfigDict, Field

from loopwright.contracts.base import Configuration, Contract
from loopwright.contracts.failures import ContractError
from loopwright.contracts.words import Word

MIB = 1 << 20
PYTHON = ("/usr/bin/python3", "-s", "-P", "-S", "-B")
"""The Python of tools and graders: no site packages, and no folder but its library's on its path.
A command that begins so finds an interpreter already started."""
MAX_BYTES = 1 << 40
"""More than any one command has use for."""


class Limits(Configuration):
    """What one command may use; exceeding any of them ends it."""

    wall_seconds: float = Field(default=10.0, gt=0, le=86_400)
    """Wall-clock time from start to end."""
    cpu_seconds: int = Field(default=10, ge=1, le=86_400)
    """CPU time of any one process."""
    memory_bytes: int = Field(default=256 * MIB, ge=16 * MIB, le=MAX_BYTES)
    """Memory of all processes together, files in the workspace included."""
    max_processes: int = Field(default=64, ge=1, le=4_000_000)
    """Processes and threads at once."""
    output_bytes: int = Field(default=64 * 1024, ge=0, le=1024 * MIB)
    """Bytes kept of each output stream; beyond it the record says truncated."""
    drain_bytes: int = Field(default=16 * MIB, ge=0, le=MAX_BYTES)
    """Bytes of one stream after which the program is killed with ``output_limit``."""
    disk_bytes: int = Field(default=64 * MIB, ge=MIB, le=MAX_BYTES)
    """Size of the workspace."""


class EntryKind(StrEnum):
    """What a workspace can hold at a path."""

    FILE = "file"
    LINK = "link"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """One entry of a workspace: a file, a link, or a folder that holds nothing.

    Two files are equal when their paths, modes and contents are, wherever the content is.

    Example:
        ``WorkspaceFile("run.sh", b"make", executable=True)``
    """

    path: str
    """Relative path with ``/``; bytes that are not UTF-8 are surrogate-escaped."""
    data: bytes | None = field(default=None, compare=False, repr=False)
    """Content; None when it is among the blobs by its sha256, and for what is no file."""
    executable: bool = False
    """Whether the file has its execute bits."""
    kind: EntryKind = EntryKind.FILE
    size: int = 0
    """Bytes of content; taken from ``data`` where that is given."""
    sha256: str = ""
    """Hex digest of the content, worked out where ``data`` comes without; empty for no file."""
    target: str = ""
    """What a link points to, relative to its folder; written like ``path``."""

    def __post_init__(self) -> None:
        if self.data is not None and not self.sha256:
            object.__setattr__(self, "size", len(self.data))
            object.__setattr__(self, "sha256", hashlib.sha256(self.data).hexdigest())

    @classmethod
    def folder(cls, path: str) -> "WorkspaceFile":
        """Name a folder that holds nothing; all others are there by what they hold."""
        return cls(path, kind=EntryKind.FOLDER)

    @classmethod
    def link(cls, path: str, target: str) -> "WorkspaceFile":
        """Name a symbolic link."""
        return cls(path, kind=EntryKind.LINK, target=target)

    @property
    def raw_path(self) -> bytes:
        """The path as the file system has it."""
        return raw(self.path)


@dataclass(frozen=True)
class Workspace:
    """The files of an episode as a value; equal content gives equal digests on every host.

    Example:
        ``Workspace.of({"answer.py": b"x = 1"}).digest``
    """

    files: tuple[WorkspaceFile, ...] = ()
    """Entries in the order of their paths' bytes."""

    @classmethod
    def of(cls, files: Mapping[str, bytes]) -> "Workspace":
        """Build a workspace of plain files from path -> content."""
        return cls.holding(WorkspaceFile(path, data) for path, data in files.items())

    @classmethod
    def holding(cls, entries: Iterable[WorkspaceFile]) -> "Workspace":
        """Put entries in their order; a folder that holds another entry needs no mention."""
        ordered = sorted(entries, key=lambda entry: entry.raw_path)
        parents = {parent for entry in ordered for parent in parents_of(entry.path)}
        return cls(
            tuple(
                entry
                for entry in ordered
                if entry.kind is not EntryKind.FOLDER or entry.path not in parents
            )
        )

    @cached_property
    def manifest(self) -> bytes:
        """The canonical list of all entries: path, mode, size and sha256 or target of each."""
        return b"".join(map(_manifest_line, self.files))

    @cached_property
    def digest(self) -> str:
        """Hex sha256 of the manifest."""
        return hashlib.sha256(self.manifest).hexdigest()

    @property
    def num_bytes(self) -> int:
        """Bytes of all contents together."""
        return sum(file.size for file in self.files)

    @classmethod
    def from_manifest(cls, manifest: bytes) -> "Workspace":
        """Read a manifest; no content comes with it.

        Raises:
            ContractError: this is no manifest of this version.
        """
        try:
            return cls(tuple(_read_manifest(manifest)))
        except (ValueError, IndexError) as error:
            raise ContractError(f"this is no manifest of a workspace: {error}") from error


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something a program left that a workspace does not hold."""

    path: str
    """Written like a file's path; the beginning of one that is too long."""
    reason: str


def raw(path: str) -> bytes:
    """Give the bytes that a path of a workspace stands for."""
    return path.encode("utf-8", "surrogateescape")


def written(path: bytes) -> str:
    """Write bytes of the file system as a path of a workspace."""
    return path.decode("utf-8", "surrogateescape")


def parents_of(path: str) -> Iterator[str]:
    """List the folders on the way to a path, the nearest first."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


def _manifest_line(entry: WorkspaceFile) -> bytes:
    path = entry.raw_path
    if entry.kind is EntryKind.FOLDER:
        return b"%d:%b folder\n" % (len(path), path)
    if entry.kind is EntryKind.LINK:
        target = raw(entry.target)
        return b"%d:%b link %d:%b\n" % (len(path), path, len(target), target)
    mode = b"755" if entry.executable else b"644"
    return b"%d:%b %b %d %b\n" % (len(path), path, mode, entry.size, entry.sha256.encode())


def _read_manifest(manifest: bytes) -> Iterator[WorkspaceFile]:
    start = 0
    while start < len(manifest):
        path, start = _read_text(manifest, start)
        if manifest.startswith(b" link ", start):
            target, start = _read_text(manifest, start + len(b" link "))
            yield WorkspaceFile.link(path, target)
        end = manifest.index(b"\n", start)
        words = manifest[start:end].decode("ascii").split()
        if words == ["folder"]:
            yield WorkspaceFile.folder(path)
        elif words:
            mode, size, digest = words
            yield WorkspaceFile(path, executable=mode == "755", size=int(size), sha256=digest)
        start = end + 1


def _read_text(manifest: bytes, start: int) -> tuple[str, int]:
    colon = manifest.index(b":", start)
    length = manifest[start:colon]
    if not length.isdigit():
        raise ValueError(f"expected a length, got {length[:20]!r}")
    end = colon + 1 + int(length)
    return written(manifest[colon + 1 : end]), end


class Strict(Contract):
    """Entropy and clock that a command sees instead of the real ones, so that runs are equal."""

    seed: int = Field(default=0, ge=0, lt=1 << 64)
    """All of the jail's entropy comes from it."""
    clock: int = Field(default=1_600_000_000, ge=0, le=4_102_444_800)
    """Unix time at which the wall clock of dynamically linked programs stands still."""


class CommandRequest(Contract):
    """One command for the jail."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    argv: tuple[Word, ...] = Field(min_length=1)
    """Program and arguments, as seen inside."""
    stdin: bytes = b""
    """Bytes given on standard input."""
    env: dict[Word, Word] = Field(default_factory=dict)
    """Variables added to the jail's own small environment."""
    limits: Limits = Limits()
    collect: bool = True
    """Whether the workspace afterwards is wanted; False is faster and returns the one given."""
    base: str = ""
    """Digest of a kept workspace that most files of this one are from: these are not copied."""
    root: str = ""
    """Digest of the root file system; empty for the host's own ``/usr``."""
    packages: tuple[str, ...] = ()
    """Digests of package folders, each read-only at ``/packages/`` and its first 12 digits."""
    has_loopback: bool = False
    """Whether the loopback interface is up; there is no other network in any case."""
    strict: Strict | None = None
    """Entropy and clock to be equal in every run; None for the real ones."""


class CommandResult(Contract):
    """How a command ended. Trouble of the host is an exception, never a result."""

    exit_code: int | None = None
    """Exit code, or None when a signal or a limit ended the command."""
    signal: int | None = None
    """Signal that ended the command, or None."""
    timed_out: bool = False
    oom: bool = False
    """Whether the program was killed because the memory of all its processes together ran out."""
    num_oom_kills: int = 0
    """Processes that were killed for it; a program may go on without those that it started."""
    output_limit: bool = False
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    num_stdout_bytes: int = 0
    """Bytes that came out, kept or not."""
    num_stderr_bytes: int = 0
    start_error: str | None = None
    """Why the program could not be executed at all; its exit code is then 127 or 126."""
    num_strays: int = 0
    """Processes that were still running when the program ended, and were killed."""
    is_suspect: bool = False
    """Whether the host starved the command of processor time, so that a timeout says little."""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    limits: Limits = Limits()
    """The limits in force."""
    strict: Strict | None = None
    """Entropy and clock in force; None for the real ones."""
