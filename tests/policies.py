"""The base policy that ships with the package."""

from pathlib import Path

import loopwright

PICO_DIRECTORY = Path(loopwright.__file__).parent / "policies" / "pico"
