"""What changed from one workspace to another."""

from dataclasses import dataclass

from loopwright.contracts.workspaces import EntryKind, Workspace, WorkspaceFile, parents_of


@dataclass(frozen=True, slots=True)
class Difference:
    """Paths that differ, each list in the order of their bytes."""

    added: tuple[str, ...]
    modified: tuple[str, ...]
    """There before and after, with another content, mode, kind or target."""
    deleted: tuple[str, ...]


def difference(before: Workspace, after: Workspace) -> Difference:
    """Compare two workspaces; a folder that only gained or lost what it holds has not changed."""
    old = {entry.path: entry for entry in before.files}
    return Difference(
        added=_only_in(after, before),
        modified=tuple(
            entry.path for entry in after.files if entry.path in old and entry != old[entry.path]
        ),
        deleted=_only_in(before, after),
    )


def _only_in(workspace: Workspace, other: Workspace) -> tuple[str, ...]:
    paths = {entry.path for entry in other.files}
    folders = {folder for path in paths for folder in parents_of(path)}

    def is_there(entry: WorkspaceFile) -> bool:
        is_folder = entry.kind is EntryKind.FOLDER
        return entry.path in paths or (is_folder and entry.path in folders)

    return tuple(entry.path for entry in workspace.files if not is_there(entry))
