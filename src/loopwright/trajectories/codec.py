"""Trajectory <-> the bytes of one artifact: JSON, gzipped, equal for equal trajectories."""

import gzip
import json

from pydantic import ValidationError

from loopwright.contracts.base import SCHEMA_VERSION, refusals
from loopwright.contracts.failures import ContractError
from loopwright.trajectories.trajectory import Trajectory


def encode(trajectory: Trajectory) -> bytes:
    """Code a trajectory.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(
        trajectory.model_dump(mode="json"),
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    return gzip.compress(text.encode(), compresslevel=3, mtime=0)


def decode(data: bytes) -> Trajectory:
    """Read a trajectory back.

    Raises:
        ContractError: the bytes are no trajectory, or one of a newer schema.
    """
    try:
        values = json.loads(gzip.decompress(data))
        if values["schema_version"] > SCHEMA_VERSION:
            raise ContractError(
                f"trajectory of schema {values['schema_version']}, this version reads up to "
                f"{SCHEMA_VERSION}; upgrade loopwright"
            )
        return Trajectory.model_validate(values)
    except ValidationError as error:
        raise ContractError(f"not a trajectory: {'; '.join(refusals(error))}") from error
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ContractError(f"not a trajectory: {error}") from error
