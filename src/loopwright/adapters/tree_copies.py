"""Copies a folder of this host into a tree of files, by descriptors, following no link."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.file_tree import FOLDER_FLAGS, MAX_DEPTH, FileTree, Parts, Report, names
from loopwright.contracts.failures import UserError
from loopwright.contracts.workspaces import written

_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a folder is wanted, and how."""

    is_wanted: Callable[[Parts], bool]
    """What it refuses is left out, with all below it."""
    mode: Callable[[int], int] = stat.S_IMODE
    """Gives the mode of a copy by that of the original, which says the kind too."""


def copy_folder(folder: Path, tree: FileTree, report: Report, selection: Selection) -> None:
    """Copy what is in ``folder``; other file systems mounted below it are left out.

    Raises:
        UserError: an entry is too deep, changes while it is read, or exceeds the caps.
    """
    opened = os.open(os.path.realpath(folder), FOLDER_FLAGS)
    try:
        _Copy(tree, report, selection, os.fstat(opened).st_dev).copy(opened, ())
    finally:
        os.close(opened)


@dataclass(frozen=True, slots=True)
class _Copy:
    tree: FileTree
    report: Report
    selection: Selection
    device: int

    def copy(self, folder: int, above: Parts) -> None:
        if len(above) > MAX_DEPTH:
            raise UserError(f"it has more than {MAX_DEPTH} folders in one another")
        for name in names(folder):
            path = (*above, name)
            if self.selection.is_wanted(path):
                self._copy_entry(folder, path)

    def _copy_entry(self, folder: int, path: Parts) -> None:
        found = os.stat(path[-1], dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(found):
            self.tree.write_link(path, os.readlink(path[-1], dir_fd=folder))
        elif stat.S_ISDIR(found):
            self._copy_below(folder, path)
        elif stat.S_ISREG(found):
            self._copy_file(folder, path)
        else:
            self.report.skip(b"/".join(path), _KINDS.get(stat.S_IFMT(found), "of no known kind"))

    def _copy_below(self, folder: int, path: Parts) -> None:
        opened = os.open(path[-1], FOLDER_FLAGS, dir_fd=folder)
        try:
            found = os.fstat(opened)
            if found.st_dev != self.device:
                self.report.skip(b"/".join(path), "on another file system")
            elif self.tree.is_root(found):
                self.report.skip(b"/".join(path), "the root in the making")
            else:
                self.tree.write_folder(path, self.selection.mode(found.st_mode))
                self.copy(opened, path)
        finally:
            os.close(opened)

    def _copy_file(self, folder: int, path: Parts) -> None:
        opened = os.open(path[-1], _FILE_FLAGS, dir_fd=folder)
        with os.fdopen(opened, "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise UserError(f"{written(b'/'.join(path))!r} changed while it was read")
            mode = self.selection.mode(found.st_mode)
            self.tree.write_file(path, file, size=found.st_size, mode=mode)
