"""Keys of the servers, generated once for a state folder and readable by its owner only."""

import secrets

from pydantic import Field

from loopwright.contracts.base import Contract
from loopwright.contracts.failures import UserError
from loopwright.embedded.state_folder import StateFolder, write_private


def _key() -> str:
    return secrets.token_hex(16)


class Credentials(Contract):
    """Keys of the S3 server and the engine."""

    s3_access_key: str = Field(default_factory=_key)
    s3_secret_key: str = Field(default_factory=_key)
    engine_api_key: str = Field(default_factory=_key)


def load_credentials(folder: StateFolder) -> Credentials:
    """Read the keys, or generate them the first time.

    Raises:
        UserError: the file is damaged.
    """
    try:
        return Credentials.model_validate_json(folder.credentials.read_bytes())
    except FileNotFoundError:
        credentials = Credentials()
    except ValueError as error:
        raise UserError(f"{folder.credentials} is damaged; remove it") from error
    write_private(folder.credentials, credentials.model_dump_json() + "\n")
    return credentials
