"""The small script around each command of a shell session, and the services it starts before.

It lives in the arguments of the jail's first process and so leaves no trace in the workspace. The
command's standard output and error are one stream, in the order in which it wrote; the jail's
standard error carries the script's private report. The command may well write to it, but finds
nothing there to gain: a report decides on the session alone, and on words about it.
"""

import math
import shlex

from pydantic import Field, model_validator

from loopwright.contracts.base import Contract
from loopwright.environments.shell_session import WORKSPACE, ShellSession

MAX_COMMAND_BYTES = 100_000
"""Length of a command; the kernel takes no argument above 128 KiB."""
_POLL_SECONDS = 0.02

# Variables are positional: command, preamble, then five for each service. Descriptor 3 is the
# report, open in the script alone; descriptor 4 gives bash the preamble, so that messages of bash
# name the lines of the command as it was written. Group signals of the command must not end the
# script. What is left running may end by itself for a moment, as process substitutions do; when
# there is no process left to wait with, the trap still tells the end as it was.
_SCRIPT = r"""
exec 3>&2 2>&1 </dev/null
printf ':start %s\0' $$ >&3
trap : HUP INT QUIT PIPE ALRM TERM USR1 USR2
command=$1 preamble=$2
shift 2
shell=/bin/sh
[ -x /bin/bash ] && shell=/bin/bash

listens() {
  for table in /proc/self/net/tcp /proc/self/net/tcp6; do
    while read -r _ address _ status _; do
      case "$address $status" in *":$1 0A") return 0 ;; esac
    done <"$table"
  done 2>/dev/null
  return 1
}

is_ready() {
  [ -z "$1" ] || listens "$1" || return 1
  [ -z "$2" ] || "$shell" -c "$2" >/dev/null 2>&1 3>&-
}

serve() {
  "$shell" -c "$2" >"/tmp/$1.log" 2>&1 3>&- &
  service=$! polls=$5 state=ready
  until is_ready "$3" "$4"; do
    polls=$((polls - 1))
    if [ "$polls" -lt 0 ]; then state=late; break; fi
    /bin/sleep 0.02 2>/dev/null
    if [ "$service" ] && ! kill -0 "$service" 2>/dev/null; then
      wait "$service"; code=$?; service=
      if [ "$code" != 0 ]; then state=$code; break; fi
    fi
  done
  printf ':service %s %s\0' "$1" "$state" >&3
}

find_strays() {
  strays=
  for process in /proc/[0-9]*; do
    case "$known" in *" $process "*) continue ;; esac
    { read -r line <"$process/stat"; } 2>/dev/null || continue
    case "$line" in *") Z "*) continue ;; esac
    strays="$strays$line
"
  done
}

while [ $# -gt 0 ]; do serve "$1" "$2" "$3" "$4" "$5"; shift 5; done
set -- /proc/[0-9]*
known=" $* "
(
  exec 3>&-
  [ "$shell" = /bin/bash ] || exec "$shell" -c "$preamble
eval \"\$1\"" sh "$command"
  exec 4<<END
$preamble
END
  export BASH_ENV=/proc/self/fd/4
  exec "$shell" -c -- "$command" bash
)
code=$?
exec 2>/dev/null
trap 'printf ":strays %s\0" "$strays" >&3; exit "$code"' EXIT
polls=5
find_strays
while [ "$strays" ] && [ "$polls" -gt 0 ]; do
  polls=$((polls - 1))
  /bin/sleep 0.02
  find_strays
done
"""

# The first cat shows what the script was given, the second what the command's shell exports.
_AT_EXIT = (
    "{ set +x; } 2>/dev/null; { printf ':cwd %s\\0:before\\0' \"$PWD\"; "
    "/bin/cat /proc/$PPID/environ && printf ':after\\0' && "
    "/bin/cat /proc/self/environ && printf ':end\\0'; } 2>/dev/null >/proc/$PPID/fd/3"
)


class Service(Contract):
    """A program that a task wants running while commands do, such as a server on a port.

    It is started anew in the jail of each command, from the files as they are then, and its output
    is in ``/tmp/NAME.log`` there.

    Example:
        ``Service(name="web", command="python3 -m http.server 8123", port=8123)``
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")
    command: str = Field(min_length=1)
    """Shell command, run in the workspace; it may go to the background by itself."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """TCP port at which it listens once it is ready."""
    check: str | None = Field(default=None, min_length=1)
    """Shell command that succeeds once it is ready."""
    ready_seconds: float = Field(default=10.0, gt=0, le=600)
    """How long to wait for it, counted in the time of the command."""

    @model_validator(mode="after")
    def _can_be_waited_for(self) -> "Service":
        if self.port is None and self.check is None:
            raise ValueError(f"service {self.name!r} needs a port or a check, to know it is ready")
        return self


def command_line(
    command: str, *, session: ShellSession, services: tuple[Service, ...]
) -> tuple[str, ...]:
    """Give the arguments that run a command in a session, with bash where the root has it."""
    arguments = [command, _preamble(session)]
    for service in services:
        port = "" if service.port is None else f"{service.port:04X}"
        num_polls = math.ceil(service.ready_seconds / _POLL_SECONDS)
        arguments += [service.name, service.command, port, service.check or "", str(num_polls)]
    return ("/bin/sh", "-c", _SCRIPT, "sh", *arguments)


def _preamble(session: ShellSession) -> str:
    """Write what the command's shell does first: take the session up, and report at its end."""
    lines = ["unset BASH_ENV; exec 4<&-"]
    if session.cwd != WORKSPACE:
        lines.append(
            f"cd -- {shlex.quote(session.cwd)} 2>/dev/null || printf ':lost\\0' >/proc/$PPID/fd/3"
        )
    lines += [f"export {name}={shlex.quote(value)}" for name, value in session.variables.items()]
    lines += [f"unset -v {name}" for name in session.unset]
    lines.append(f"trap {shlex.quote(_AT_EXIT)} EXIT")
    return "\n".join(lines)
