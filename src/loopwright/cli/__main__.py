"""The console script ``loopwright``.

Everything else is loaded only once Ctrl-C is answered for.
"""

import os
import signal
import sys

from loopwright.cli.errors import reported_errors


def main() -> None:
    """Run the command line and end the process."""
    code: object = 0
    # Whoever ends a command otherwise than by Ctrl-C leaves nothing behind either.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with reported_errors():
            from loopwright.cli.app import run

            code = run()
    except SystemExit as done:
        code = done.code
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None where whoever started the command closed it
            stream.flush()
    # A native thread of the Temporal SDK can abort an interpreter that is shutting down.
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
