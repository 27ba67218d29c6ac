"""What a command says, and with which status it ends, when something is wrong."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from pydantic import ValidationError

from loopwright.contracts.base import refusals
from loopwright.contracts.failures import LoopError, UserError

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130


@contextmanager
def reported_errors() -> Iterator[None]:
    """End the process with a message instead of a traceback; also decorates a command."""
    try:
        yield
    except typer.BadParameter as error:
        if isinstance(error.__cause__, ValidationError):
            error.message = "; ".join(refusals(error.__cause__))
        error.show()
        sys.exit(BAD_INPUT)
    except typer.TyperException as error:
        error.show()
        sys.exit(error.exit_code)
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
