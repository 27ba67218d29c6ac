"""Turns the files that a workspace begins with into the workspace, touching what differs only."""

import os
from contextlib import suppress

from loopwright.adapters.collect import lay_out
from loopwright.contracts.workspaces import EntryKind, Workspace, parents_of, raw
from loopwright.core.protocols import Blobs


def lay_out_over(
    base: Workspace, workspace: Workspace, folder: int, *, owner: int, blobs: Blobs | None
) -> None:
    """Make the files of ``workspace`` below an open folder that holds exactly those of ``base``.

    Nothing may run in the folder.

    Raises:
        TaskError: a path is unsafe or used twice, or the files do not fit.
        StoreError: a content cannot be had.
        OSError: the host failed.
    """
    if not base.files:
        lay_out(workspace, folder, owner=owner, blobs=blobs)
        return
    wanted, there = set(workspace.files), set(base.files)
    _remove({entry.path: entry.kind for entry in there - wanted}, workspace, folder)
    changed = Workspace(tuple(entry for entry in workspace.files if entry not in there))
    lay_out(changed, folder, owner=owner, blobs=blobs)


def _remove(gone: dict[str, EntryKind], workspace: Workspace, folder: int) -> None:
    """Take entries away, and the folders that only held them; the others keep no time of it."""
    kept = {parent for entry in workspace.files for parent in parents_of(entry.path)}
    kept |= {entry.path for entry in workspace.files if entry.kind is EntryKind.FOLDER}
    empty = {parent for path in gone for parent in parents_of(path)}
    empty |= {path for path, kind in gone.items() if kind is EntryKind.FOLDER}
    for path, kind in gone.items():
        if kind is not EntryKind.FOLDER:
            os.unlink(raw(path), dir_fd=folder)
    for path in sorted(empty - kept, key=len, reverse=True):
        with suppress(FileNotFoundError):
            os.rmdir(raw(path), dir_fd=folder)
    for path in empty & kept:
        os.utime(raw(path), (0, 0), dir_fd=folder, follow_symlinks=False)
