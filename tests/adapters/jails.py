"""What tests of the jail share."""

import json
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from loopwright.contracts.workspaces import CommandResult

USER_ID = 1234
"""Of an ordinary user."""
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


def as_ordinary_user(deed: Callable[[], object], folder: Path) -> dict[str, Any]:
    """Do it in a child process of another user, and give back what it gave."""
    reader, writer = os.pipe()
    for path in (folder, *folder.parents):
        if path == Path(tempfile.gettempdir()):
            break
        path.chmod(0o755)
    os.chown(folder, USER_ID, USER_ID)
    child = os.fork()
    if child == 0:
        try:
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            os.setgroups([])
            os.setresgid(USER_ID, USER_ID, USER_ID)
            os.setresuid(USER_ID, USER_ID, USER_ID)
            answer = json.dumps({"value": deed()}, default=str)
        except BaseException:
            answer = json.dumps({"value": {"error": traceback.format_exc()}})
        with os.fdopen(writer, "w") as told:
            told.write(answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        answer = told.read()
    os.waitpid(child, 0)
    value = json.loads(answer)["value"]
    return value if isinstance(value, dict) else {"value": value}
