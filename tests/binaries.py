"""Programs that Python packages ship."""

import shutil
import sys
from pathlib import Path


def binary(name: str) -> str:
    """Find a program of this environment."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found, f"{name} is not installed; run `make setup`"
    return found
