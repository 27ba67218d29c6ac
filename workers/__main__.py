"""One worker process of a pool: ``python -m loopwright.workers POOL``."""

import asyncio
import logging
import os
import sys

from loopwright.contracts.failures import LoopError, UserError
from loopwright.contracts.queues import Pool


def run(pool: str) -> int:
    """Run a worker until it is told to stop, and give the exit status."""
    logging.basicConfig(
        level=os.environ.get("LOOPWRIGHT_LOG_LEVEL", "INFO"),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("botocore").setLevel(logging.WARNING)
    try:
        if pool not in list(Pool):
            raise UserError(f"pool {pool!r} does not exist; there are {', '.join(Pool)}")
        from loopwright.workers.bootstrap import run_worker
        from loopwright.workers.settings import Settings

        asyncio.run(run_worker(Pool(pool), Settings.from_environment()))
    except LoopError as error:
        print(f"loopwright worker {pool}: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


def main() -> None:
    """Run the worker that the command line names."""
    if len(sys.argv) != 2:
        print(f"usage: python -m loopwright.workers {{{','.join(Pool)}}}", file=sys.stderr)
        sys.exit(2)
    status = run(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    # A native thread of the Temporal SDK can abort an interpreter that is shutting down.
    os._exit(status)


if __name__ == "__main__":
    main()
