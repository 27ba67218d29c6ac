"""Byte code of package folders, made for the Python of jails.

It follows from the sources and is therefore no part of what a folder is named by. It is trusted
without a look at its sources, whose times a folder does not keep.
"""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

BYTE_CODE = b"__pycache__"
"""Name of the folders that it is kept in."""
PYTHON = Path("/usr/bin/python3")
_SECONDS = 900


def compile_packages(folder: Path, digest: str) -> None:
    """Compile what can be compiled, as if it lay where jails see it; without Python, nothing.

    Only plain files are compiled, and no link is followed to one.
    """
    sources = b"\n".join(_sources(os.fsencode(folder)))
    if not sources or not PYTHON.exists():
        return
    seen_at = f"/packages/{digest[:12]}"
    command = [str(PYTHON), "-I", "-S", "-m", "compileall", "-q", "-i", "-"]
    places = ["-s", str(folder), "-p", seen_at, "--invalidation-mode", "unchecked-hash"]
    # What takes for ever or cannot be compiled is compiled, and told of, where it is imported.
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [*command, *places],
            input=sources,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": "0"},
            umask=0o022,
            timeout=_SECONDS,
            check=False,
        )


def _sources(folder: bytes) -> Iterator[bytes]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = parent + b"/" + name
            if name.endswith(b".py") and b"\n" not in path and stat.S_ISREG(os.lstat(path).st_mode):
                yield path
