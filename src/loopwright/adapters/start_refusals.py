"""Commands that no kernel could start: they end as it would end them, and need no jail."""

import errno
import os
from collections.abc import Iterator

from loopwright.contracts.workspaces import CommandRequest, CommandResult

MAX_WORD_BYTES = (8 << 20) - (64 << 10)
"""Most bytes of arguments and variables; process 1 of a jail takes 8 MiB, with those of ours."""
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
    return errno.E2BIG if sum(map(len, words)) + 2 * len(words) > MAX_WORD_BYTES else None


def _words(request: CommandRequest) -> Iterator[str]:
    yield from request.argv
    for item in request.env.items():
        yield from item
