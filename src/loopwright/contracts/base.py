"""The base of every model that crosses a process boundary."""

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1
"""Version of the stored records; a reader refuses a newer one."""


class Contract(BaseModel):
    """A frozen model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
