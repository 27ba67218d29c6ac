"""What tests of the jail share."""

import os
from pathlib import Path
from typing import Protocol

import pytest

from loopwright.contracts.workspaces import CommandResult

COLD_PYTHON = ("/usr/bin/python3", "-I", "-S")
needs_jails = pytest.mark.skipif(os.geteuid() != 0, reason="jails need root")


class RUN(Protocol):
    """Runs a Python program in the jail; keywords are fields of the request."""

    def __call__(self, code: str, **fields: object) -> CommandResult: ...


def left_on_host(*words: str) -> list[str]:
    """List the processes whose command line holds these words, zombies of none."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if command[: len(words)] == list(words):
            found.append(entry.name)
    return found
