"""A detached supervisor: ``python -m loopwright.embedded STATE`` runs that folder's plan."""

import logging
import sys
from pathlib import Path

from loopwright.contracts.failures import LoopError, UserError
from loopwright.embedded.plan import Plan
from loopwright.embedded.state_folder import StateFolder
from loopwright.embedded.supervision import supervise


def main() -> int:
    """Run the plan, and give the exit status."""
    if len(sys.argv) != 2:
        print("usage: python -m loopwright.embedded STATE", file=sys.stderr)
        return 2
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(message)s")
    try:
        supervise(Plan.model_validate_json(StateFolder(Path(sys.argv[1])).plan.read_bytes()))
    except LoopError as error:
        print(f"loopwright: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
