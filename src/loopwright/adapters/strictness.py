"""Entropy from a seed and a wall clock that stands still, for runs that must be equal.

Not covered: clocks that measure time spent, times of files, the random bytes that the kernel gives
every process (stack canaries), names that the C library itself draws (``mkstemp``), instructions of
the processor for entropy, and the wall clock of statically linked programs.
"""

from hashlib import shake_256
from pathlib import Path

from loopwright.contracts.workspaces import Strict

ENTROPY = "entropy"
"""File that a strict jail sees as its devices of entropy."""
_NUM_BYTES = 1 << 20


def write_entropy(path: Path, seed: int) -> None:
    """Write what a strict jail reads as random bytes; each reader begins at its start."""
    path.unlink(missing_ok=True)
    path.write_bytes(shake_256(b"loopwright entropy %d" % seed).digest(_NUM_BYTES))
    path.chmod(0o444)


def strict_variables(strict: Strict | None) -> dict[str, str]:
    """Give the variables by which dynamically linked programs find our clock and entropy."""
    if strict is None:
        return {}
    return {"LD_PRELOAD": "/jstrict.so", "JAIL_CLOCK": str(strict.clock)}
