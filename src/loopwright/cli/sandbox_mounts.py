"""What ``--root`` and ``--packages`` of a command name."""

from collections.abc import Sequence

from loopwright.adapters.root_store import RootKind, RootStore
from loopwright.contracts.failures import RootMissing, UserError
from loopwright.contracts.workspaces import CommandRequest


def with_mounts(
    request: CommandRequest, roots: RootStore, *, root: str | None, packages: Sequence[str]
) -> CommandRequest:
    """Give the request the digests of a root and of package folders, and a path to the latter.

    Raises:
        UserError: there is no root of a name, or it is of the other kind; each on its line.
    """
    problems: list[str] = []
    found = _digest(roots, root, RootKind.ROOT, problems) if root is not None else ""
    digests = [_digest(roots, name, RootKind.PACKAGES, problems) for name in packages]
    if problems:
        raise UserError("\n  ".join(["the command was not run:", *problems]))
    path = ":".join(f"/packages/{digest[:12]}" for digest in digests)
    env = {"PYTHONPATH": path, **request.env} if path else request.env
    return request.model_copy(update={"root": found, "packages": tuple(digests), "env": env})


def _digest(roots: RootStore, name: str, kind: RootKind, problems: list[str]) -> str:
    try:
        root = roots.get(name)
    except RootMissing as error:
        problems.append(f"--{kind}: {error}")
        return ""
    if root.kind is not kind:
        problems.append(f"--{kind}: {name!r} was imported for --{root.kind}")
    return root.digest
