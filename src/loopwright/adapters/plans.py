"""What a jail must be made for: a jail that waits serves only commands of its own plan."""

from dataclasses import dataclass

from loopwright.contracts.failures import TaskError
from loopwright.contracts.workspaces import PYTHON, CommandRequest, Strict

PROTECTED_VARIABLES = ("LC_", "LANG", "LD_", "MALLOC_", "PYTHON", "GLIBC_")
"""Variables that an interpreter reads when it starts, by their beginning."""
MAX_PACKAGES = 64
"""Package folders of one jail, a mount each."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of a request that is fixed when its jail is made."""

    base: str = ""
    root: str = ""
    packages: tuple[str, ...] = ()
    has_loopback: bool = False
    strict: Strict | None = None
    disk_bytes: int = 0
    has_python: bool = False
    """Whether an interpreter waits inside."""


def plan_of(request: CommandRequest) -> Plan:
    """Say what a command's jail must be.

    Raises:
        TaskError: it would hold too many package folders.
    """
    packages = tuple(dict.fromkeys(request.packages))
    if len(packages) > MAX_PACKAGES:
        raise TaskError(
            f"a command asks for {len(packages)} package folders, expected at most {MAX_PACKAGES}: "
            "put more packages in one folder"
        )
    return Plan(
        base=request.base,
        root=request.root,
        packages=packages,
        has_loopback=request.has_loopback,
        strict=request.strict,
        disk_bytes=request.limits.disk_bytes,
        has_python=_fits_python(request),
    )


def _fits_python(request: CommandRequest) -> bool:
    """Whether the command is a program text or file for the interpreter that waits."""
    if request.argv[: len(PYTHON)] != PYTHON or request.strict is not None:
        return False
    if any(name.startswith(PROTECTED_VARIABLES) for name in request.env):
        return False
    first, *others = (*request.argv[len(PYTHON) :], "")
    if first.startswith("-"):
        return first == "-c" and len(others) > 1
    return first.endswith(".py")
