"""Reads the system call filter that nsjail compiles from a policy out of a running jail.

``python -m tests.adapters.seccomp_program`` writes the programs beside the policy anew.
"""

import ctypes
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from loopwright.adapters.jail_files import DEPLOY, policy_text
from loopwright.adapters.nsjail import nsjail_binary

_ATTACH, _DETACH, _GET_FILTER = 16, 17, 0x420C
_UID = 209_999
_WALL = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def compile_policy(text: str) -> bytes:
    """Give the filter's instructions, 8 bytes each, as the kernel holds them."""
    with tempfile.NamedTemporaryFile("w", suffix=".kafel") as policy:
        policy.write(text)
        policy.flush()
        user = ("--user", f"1000:{_UID}:1", "--group", f"1000:{_UID}:1", "--chroot", "/")
        command = (*user, "--cwd", "/", "--seccomp_policy", policy.name, "--really_quiet")
        jail = subprocess.Popen(
            [nsjail_binary(), "-Mo", *command, "--", "/bin/sh", "-c", "echo; read x"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={},
        )
        assert jail.stdin
        assert jail.stdout
        try:
            jail.stdout.readline()
            children = Path(f"/proc/{jail.pid}/task/{jail.pid}/children").read_text()
            return _filter_of(int(children))
        finally:
            jail.stdin.close()
            jail.kill()
            jail.wait()
            jail.stdout.close()


def _filter_of(pid: int) -> bytes:
    _ptrace(_ATTACH, pid, 0, None)
    try:
        os.waitpid(pid, _WALL)
        length = _ptrace(_GET_FILTER, pid, 0, None)
        program = ctypes.create_string_buffer(length * 8)
        _ptrace(_GET_FILTER, pid, 0, program)
        return program.raw
    finally:
        _ptrace(_DETACH, pid, 0, signal.SIGKILL)


def _ptrace(request: int, pid: int, address: int, data: object) -> int:
    done = int(_libc.ptrace(request, pid, ctypes.c_void_p(address), data))
    if done < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")
    return done


if __name__ == "__main__":
    for name, is_strict in (("seccomp.bpf", False), ("seccomp_strict.bpf", True)):
        (DEPLOY / name).write_bytes(compile_policy(policy_text(is_strict=is_strict)))
        print(DEPLOY / name, Path(DEPLOY / name).stat().st_size)
