"""What a user may choose about the platform on one machine."""

import os
from pathlib import Path

from pydantic import Field

import loopwright
from loopwright.contracts.base import Contract
from loopwright.embedded.ports import Ports


def default_model() -> Path:
    """Name the directory of the policy that ships with the package."""
    return Path(loopwright.__file__).parent / "policies" / "pico"


class StackOptions(Contract):
    """Choices for one start."""

    model: Path = Field(default_factory=default_model)
    """Hugging Face model directory that the engine starts with."""
    ports: Ports = Ports()
    sandbox_slots: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    """Jails at once."""
    max_episodes: int = Field(default=256, ge=1)
    """Episode activities at once, and completions that the engine samples together."""
    max_model_len: int = Field(default=2048, ge=2)
    """Most tokens of a prompt with its completion; never more than the model takes."""
