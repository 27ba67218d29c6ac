"""Workspaces, commands run on them in the sandbox, and what came out."""

import hashlib

from pydantic import Field

from loopwright.contracts.base import Contract

MIB = 1 << 20
MAX_BYTES = 1 << 40
"""More than any one command has use for."""


class Limits(Contract):
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


class WorkspaceFile(Contract):
    """One file of a workspace."""

    path: str
    """Relative path with ``/``; bytes that are not UTF-8 are surrogate-escaped."""
    data: bytes
    """Content."""
    executable: bool = False
    """Whether the file has its execute bits."""


class Workspace(Contract):
    """The files of an episode as a value; equal files give equal digests.

    Example:
        ``Workspace.of({"answer.py": b"x = 1"}).digest``
    """

    files: tuple[WorkspaceFile, ...] = ()
    """Files in the order of their paths' bytes."""

    @classmethod
    def of(cls, files: dict[str, bytes]) -> "Workspace":
        """Build a workspace of plain files from path -> content."""
        ordered = sorted(files, key=lambda path: path.encode("utf-8", "surrogateescape"))
        return cls(files=tuple(WorkspaceFile(path=path, data=files[path]) for path in ordered))

    @property
    def digest(self) -> str:
        """Hex sha256 over the manifest: path, mode, size and sha256 of every file, in order."""
        manifest = hashlib.sha256()
        for file in self.files:
            path = file.path.encode("utf-8", "surrogateescape")
            content = hashlib.sha256(file.data).hexdigest()
            mode = "755" if file.executable else "644"
            manifest.update(
                b"%d:%b %s %d %s\n"
                % (
                    len(path),
                    path,
                    mode.encode(),
                    len(file.data),
                    content.encode(),
                )
            )
        return manifest.hexdigest()


class Strict(Contract):
    """Entropy and clock that a command sees instead of the real ones, so that runs are equal."""

    seed: int = Field(default=0, ge=0, lt=1 << 64)
    """All of the jail's entropy comes from it."""
    clock: int = Field(default=1_600_000_000, ge=0, le=4_102_444_800)
    """Unix time at which the wall clock of dynamically linked programs stands still."""


class CommandRequest(Contract):
    """One command for the jail."""

    argv: tuple[str, ...] = Field(min_length=1)
    """Program and arguments, as seen inside."""
    stdin: bytes = b""
    """Bytes given on standard input."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables added to the jail's own small environment."""
    limits: Limits = Limits()
    collect: bool = True
    """Whether the workspace afterwards is wanted; False is faster and returns the one given."""
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
    output_limit: bool = False
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    num_stdout_bytes: int = 0
    """Bytes that came out, kept or not."""
    num_stderr_bytes: int = 0
    is_suspect: bool = False
    """Whether the host starved the command of processor time, so that a timeout says little."""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    limits: Limits = Limits()
    """The limits in force."""
    strict: Strict | None = None
    """Entropy and clock in force; None for the real ones."""
