"""What a host needs to run jails, checked one by one, each with advice."""

import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.cgroups import find_hierarchies
from loopwright.adapters.helpers import helper_folder
from loopwright.adapters.jail_files import DEPLOY
from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.nsjail import nsjail_binary
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.contracts.workspaces import CommandRequest, Workspace

PYTHON = Path("/usr/bin/python3")


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One thing a host has or lacks."""

    name: str
    is_ok: bool
    is_required: bool
    detail: str
    """What was found."""
    advice: str = ""
    """What to do; empty when all is well."""


def check_host() -> list[HostCheck]:
    """Check everything that a jail needs; the last check runs a program in one."""
    return list(_checks())


def _checks() -> Iterator[HostCheck]:
    machine = f"{platform.system()} {platform.machine()}"
    yield _check("machine", machine == "Linux x86_64", machine, "use Linux on x86-64")
    yield _check(
        "root", os.geteuid() == 0, f"user id {os.geteuid()}", "run episode workers as root"
    )
    yield _user_namespaces()
    known = "overlay" in Path("/proc/filesystems").read_text()
    yield _check("overlayfs", known, "known" if known else "unknown", "modprobe overlay")
    yield _attempt("control groups", lambda: f"version {find_hierarchies().version}")
    merged = Path("/bin").is_symlink() and Path("/lib").is_symlink()
    yield _check("merged /usr", merged, "yes" if merged else "no", "use a system with merged /usr")
    yield _python()
    yield _attempt("helpers of jails", lambda: str(helper_folder(DEPLOY)))
    yield _attempt("nsjail", _start_nsjail)
    yield _attempt("a program in a jail", _run_jail)


def _check(name: str, is_ok: bool, detail: str, advice: str) -> HostCheck:
    return HostCheck(name, is_ok, True, detail, "" if is_ok else advice)


def _attempt(name: str, attempt: Callable[[], str]) -> HostCheck:
    try:
        return HostCheck(name, True, True, attempt())
    except SandboxUnavailable as error:
        return HostCheck(name, False, True, "failed", str(error))


def _user_namespaces() -> HostCheck:
    limit = Path("/proc/sys/user/max_user_namespaces")
    found = limit.read_text().strip() if limit.exists() else "0"
    advice = "sysctl user.max_user_namespaces=10000"
    return _check("user namespaces", int(found) > 0, f"at most {found}", advice)


def _python() -> HostCheck:
    """Programs of policies run on the system's Python; other programs do without it."""
    found = os.access(PYTHON, os.X_OK)
    detail = str(PYTHON.resolve()) if found else f"no {PYTHON}"
    return _check("python3 for programs", found, detail, "apt-get install python3-minimal")


def _start_nsjail() -> str:
    binary = nsjail_binary()
    try:
        done = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"{binary} does not start: {error}") from error
    if "--config" not in done.stdout + done.stderr:
        raise SandboxUnavailable(f"{binary} does not start: {done.stderr.strip()[-300:]}")
    return str(binary)


def _run_jail() -> str:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="loopwright-") as root,
            LocalJail(Path(root) / "jails", num_slots=1) as jail,
        ):
            result = jail.run(Workspace(), CommandRequest(argv=("/bin/true",))).result
    except OSError as error:
        raise SandboxUnavailable(f"cannot prepare a jail: {error}") from error
    if result.exit_code != 0:
        raise SandboxUnavailable(f"/bin/true ended with {result}")
    return f"{result.peak_memory_bytes >> 10} KiB, {result.wall_seconds * 1e3:.1f} ms"
