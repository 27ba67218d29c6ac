"""What a shell session carries from one command to the next, as JSON.

Every command runs in a fresh jail. As in one long session, the working directory and the exported
variables carry over, whether the command succeeded, failed or called ``exit``. The session stays as
it was before a command that was ended, replaced its shell by ``exec``, or set an EXIT trap itself.
Variables that are not exported, functions, aliases, shell options, ``/tmp`` and what runs in the
background end with the command.
"""

import re
from collections.abc import Iterable
from shlex import quote

from pydantic import Field

from loopwright.contracts.base import Contract

WORKSPACE = "/workspace"
"""Where a session begins."""
MAX_VARIABLE_BYTES = 8 * 1024
"""Length of one variable that carries over: its name, and its value as a shell quotes it."""
MAX_VARIABLES_BYTES = 32 * 1024
"""Length of all together."""
_MAX_UNSET = 100
_MAX_CWD_BYTES = 4096
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OWN = frozenset(("_", "BASH_ENV", "BASHOPTS", "EUID", "PPID", "PWD", "SHELLOPTS", "SHLVL", "UID"))
"""What each shell sets for itself."""


class ShellSession(Contract):
    """State of a session between two commands.

    Example:
        ``ShellSession(cwd="/workspace/src", variables={"DEBUG": "1"})``
    """

    cwd: str = WORKSPACE
    """Absolute path."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Exported variables that differ from those every command is given."""
    unset: tuple[str, ...] = ()
    """Variables that every command is given and that this session took away."""

    def moved(self, cwd: bytes) -> "ShellSession | None":
        """Give the session in another directory; None when its name cannot be kept."""
        try:
            text = cwd.decode()
        except UnicodeDecodeError:
            return None
        if not text.startswith("/") or len(cwd) > _MAX_CWD_BYTES:
            return None
        return self.model_copy(update={"cwd": text})

    def exported(
        self, before: dict[bytes, bytes], after: dict[bytes, bytes]
    ) -> "tuple[ShellSession, list[str]]":
        """Give the session with a command's variables, and the names of those left behind.

        ``before`` is what every command is given; what is too long or is not UTF-8 is left behind.
        """
        variables: dict[str, str] = {}
        left_behind: list[str] = []
        room = MAX_VARIABLES_BYTES
        changed = (name for name in sorted(after) if before.get(name) != after[name])
        for name in _names(changed):
            try:
                value = after[name.encode()].decode()
            except UnicodeDecodeError:
                left_behind.append(name)
                continue
            num_bytes = len(name) + len(quote(value).encode())
            if num_bytes > min(room, MAX_VARIABLE_BYTES):
                left_behind.append(name)
                continue
            variables[name] = value
            room -= num_bytes
        unset = tuple(_names(name for name in sorted(before) if name not in after))[:_MAX_UNSET]
        return self.model_copy(update={"variables": variables, "unset": unset}), left_behind


def _names(names: Iterable[bytes]) -> Iterable[str]:
    """Yield the names that a shell can export and does not set for itself."""
    for name in names:
        text = name.decode("ascii", "replace")
        if _NAME.match(text) and text not in _OWN:
            yield text
