"""The base of every model that crosses a process boundary, and words for what it refuses."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from loopwright.contracts.failures import UserError

SCHEMA_VERSION = 1
"""Version of the stored records; a reader refuses a newer one."""


class Contract(BaseModel):
    """A frozen model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Configuration(Contract):
    """A model that users build by calling its class.

    Example:
        ``LoopConfig(seed=-1)`` raises ``UserError("LoopConfig: seed: expected greater ...")``
    """

    model_config = ConfigDict(allow_inf_nan=False)  # JSON has no such numbers

    if not TYPE_CHECKING:  # checkers see the fields instead

        def __init__(self, **values: object) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                problems = "; ".join(refusals(error))
                raise UserError(f"{type(self).__name__}: {problems}") from None

        # Validation of data builds models without coming here, and gathers what it refuses.
        __init__.__pydantic_base_init__ = True


def refusals(error: ValidationError) -> Iterator[str]:
    """Say of each wrong value what was expected and what was there: ``a.b: expected ..., got 0``.

    Texts of our own validators stand as they are.
    """
    for details in first_errors(error):
        path = ".".join(map(str, details["loc"]))
        yield f"{path}: {_refusal(details)}" if path else _refusal(details)


def first_errors(error: ValidationError) -> list[ErrorDetails]:
    """Leave out that a list is too short where that is only because an entry of it is wrong."""
    found = error.errors(include_url=False)
    parents = {details["loc"][:end] for details in found for end in range(len(details["loc"]))}
    return [each for each in found if each["type"] != "too_short" or each["loc"] not in parents]


def _refusal(details: ErrorDetails) -> str:
    message = details["msg"]
    if details["type"] == "value_error":
        return message.removeprefix("Value error, ")
    if details["type"] == "extra_forbidden":
        return "unknown"
    if details["type"] == "missing":
        return "missing"
    words = message[0].lower() + message[1:].partition(", unable to")[0]
    expected = words.replace("input should be ", "expected ")
    return f"{expected}, got {_shown(details['input'])}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
