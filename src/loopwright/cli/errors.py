"""What a command says, and with which status it ends, when something is wrong."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.contracts.failures import LoopError, UserError

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130


@contextmanager
def reported_errors() -> Iterator[None]:
    """End the process with a message instead of a traceback; also decorates a command."""
    try:
        yield
    except LoopError as error:
        print(f"loopwright: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT if isinstance(error, UserError) else FAILED)
    except KeyboardInterrupt:
        print("loopwright: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.exit(FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"loopwright: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(FAILED)
