"""Directories that appear whole under the name asked for, or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loopwright.contracts.failures import UserError


@contextmanager
def new_directory(output: Path) -> Iterator[Path]:
    """Give an empty directory to fill; it gets the name ``output`` when the block has ended well.

    Raises:
        UserError: the output exists, or cannot be made where it is named.
    """
    unfinished = _make_beside(output)
    try:
        yield unfinished
        unfinished.chmod(0o755)
        unfinished.rename(output)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _make_beside(output: Path) -> Path:
    try:
        if output.exists() or not output.parent.is_dir():
            problem = "exists" if output.exists() else "has no parent directory"
            raise UserError(f"{output} {problem}; name a new directory in an existing one")
        return Path(tempfile.mkdtemp(prefix=f".{output.name}-", dir=output.parent))
    except OSError as error:
        raise UserError(
            f"{str(output)[:200]} cannot be made: {error.strerror}; name a new directory in one "
            f"that can be written"
        ) from error
