"""A folder for roots that jails could reach, and what is in trees of files."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loopwright.adapters.root_store import Root


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """Give a folder whose parents anybody may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="loopwright-roots-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def found_in(root: Root) -> dict[str, str]:
    """Give what each path of a root is: mode and content, or target."""
    return dict(_walk(root.folder))


def _walk(folder: Path) -> Iterator[tuple[str, str]]:
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent) / name
            yield str(path.relative_to(folder)), _describe(path)


def _describe(path: Path) -> str:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"-> {path.readlink()}"
    mode = f"{stat.S_IMODE(status.st_mode):o}"
    return f"{mode}/" if path.is_dir() else f"{mode} {path.read_bytes().decode('latin-1')}"
