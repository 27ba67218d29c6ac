"""The programs in C that jails need: built with the package, or compiled once on this host."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from loopwright.contracts.failures import SandboxUnavailable

_LIST = "helpers.txt"
"""Each line: a program, the compiler's options, and the names of its sources."""


def find_compiler() -> str | None:
    """Give this host's C compiler."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("musl-gcc")


def helper_folder(sources: Path) -> Path:
    """Give the folder of the programs, and compile them where nobody has yet.

    Raises:
        SandboxUnavailable: there is no C compiler or no static C library.
    """
    built = sources / "bin"
    if built.is_dir():
        return built
    folder = _cache() / "helpers" / _digest(sources)
    if not folder.is_dir():
        _compile(sources, folder)
    if not folder.is_dir():
        raise SandboxUnavailable(f"the helpers of jails cannot be kept in {folder}")
    return folder


def _compile(sources: Path, folder: Path) -> None:
    """Compile all programs at once, and show them together."""
    compiler = find_compiler()
    if compiler is None:
        raise SandboxUnavailable(
            "no C compiler found; install one (Debian: apt-get install gcc libc6-dev), or a wheel "
            "of loopwright that was built where there is one"
        )
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        _run_compiler(compiler, sources, made)
        with suppress(OSError):  # another process was first
            made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _run_compiler(compiler: str, sources: Path, target: Path) -> None:
    running = [
        subprocess.Popen(
            [compiler, "-O2", "-o", str(target / name), *words],
            stderr=subprocess.PIPE,
            text=True,
            cwd=sources,
        )
        for name, *words in map(str.split, (sources / _LIST).read_text().splitlines())
    ]
    errors = [process.communicate()[1] for process in running]
    if any(process.returncode for process in running):
        raise SandboxUnavailable(
            f"{compiler} cannot compile the helpers of jails; install the static C library "
            f"(libc6-dev or musl-tools): {''.join(errors).strip()[:500]}"
        )


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "loopwright"


def _digest(sources: Path) -> str:
    """Name what the programs are made from."""
    names = sorted(path.name for path in sources.iterdir() if path.suffix in (".c", ".h", ".txt"))
    text = b"".join(name.encode() + (sources / name).read_bytes() for name in names)
    return sha256(text).hexdigest()[:16]
