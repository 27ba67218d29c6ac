"""Commands that no kernel could start: they end as it would end them, and need no jail.

What is left can be started whichever way its jail starts it, so that these ways do not differ.
"""

import errno
import os
from collections.abc import Iterator

from loopwright.contracts.workspaces import CommandRequest, CommandResult

MAX_WORD_BYTES = 128 << 10
"""Most bytes of one argument, or of one variable with its name; the end mark counts."""
MAX_BYTES = (2 << 20) - (16 << 10)
"""Most bytes of all of them with a pointer to each: a quarter of a jail's stack, less what is ours,
the program's name once more, and the line that names a script's interpreter."""
_POINTER_BYTES = 8
_CANNOT_EXECUTE = 126
_SHOWN_CHARACTERS = 200


def refusal(request: CommandRequest) -> CommandResult | None:
    """Give the end of a command that cannot even be handed to a jail; None where it can."""
    reason = _reason(request)
    if reason is None:
        return None
    error = os.strerror(reason)
    text = f"cannot execute {request.argv[0][:_SHOWN_CHARACTERS]!r}: {error}\n".encode()
    return CommandResult(
        exit_code=_CANNOT_EXECUTE,
        start_error=error,
        stderr=text[: request.limits.output_bytes],
        stderr_truncated=len(text) > request.limits.output_bytes,
        num_stderr_bytes=len(text),
        limits=request.limits,
        strict=request.strict,
    )


def _reason(request: CommandRequest) -> int | None:
    """Give the error number of what is wrong with the words."""
    if any(not name or "=" in name for name in request.env):
        return errno.EINVAL
    try:
        words = list(map(os.fsencode, _words(request)))
    except UnicodeEncodeError:
        return errno.EILSEQ
    if any(b"\0" in word for word in words):
        return errno.EINVAL
    sizes = [len(word) + 1 for word in words]
    is_too_long = (
        max(sizes) > MAX_WORD_BYTES or sum(sizes) + _POINTER_BYTES * len(sizes) > MAX_BYTES
    )
    return errno.E2BIG if is_too_long else None


def _words(request: CommandRequest) -> Iterator[str]:
    yield from request.argv
    for name, value in request.env.items():
        yield f"{name}={value}"
