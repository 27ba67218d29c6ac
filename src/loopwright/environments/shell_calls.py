"""The calls that the shell tool takes, as models of their arguments and as a policy sees them."""

from pydantic import ConfigDict, Field, ValidationError

from loopwright.contracts.base import Contract
from loopwright.contracts.turns import JsonObject, ToolCall
from loopwright.environments.clean_text import scrub
from loopwright.environments.workspace_files import CallRefused

_MAX_LINE = 1_000_000_000
_LINES = ("first_line", "last_line")


class _Arguments(Contract):
    model_config = ConfigDict(strict=True, use_attribute_docstrings=True)


class BashCall(_Arguments):
    """Run a shell command in the workspace; the working directory and exported variables stay."""

    command: str
    """The command, one line or many; nothing can be typed into it while it runs."""


class ReadFileCall(_Arguments):
    """Read a text file of the workspace, or some of its lines, with line numbers."""

    path: str
    """Path of the file."""
    first_line: int = Field(default=1, ge=1, le=_MAX_LINE)
    """Number of the first line, from 1."""
    last_line: int | None = Field(default=None, ge=1, le=_MAX_LINE)
    """Number of the last line; the file's last one if left out."""


class EditFileCall(_Arguments):
    """Replace a piece of text that occurs exactly once in a file of the workspace."""

    path: str
    """Path of the file."""
    old: str
    """The text to replace, exactly as it is in the file, without line numbers."""
    new: str
    """The text to put there."""


class WriteFileCall(_Arguments):
    """Create a file of the workspace, or replace all that is in it."""

    path: str
    """Path of the file; folders on the way are made."""
    content: str
    """All that the file shall hold."""


Call = BashCall | ReadFileCall | EditFileCall | WriteFileCall

_CALLS: dict[str, type[BashCall | ReadFileCall | EditFileCall | WriteFileCall]] = {
    "bash": BashCall,
    "read_file": ReadFileCall,
    "edit_file": EditFileCall,
    "write_file": WriteFileCall,
}


def describe_calls() -> list[JsonObject]:
    """Describe the calls in the form that chat templates take for tools."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": model.__doc__,
                "parameters": _without_titles(model.model_json_schema()),
            },
        }
        for name, model in _CALLS.items()
    ]


def read_call(call: ToolCall) -> Call:
    """Give a tool call as one that the shell tool takes.

    Raises:
        CallRefused: there is no such call, or its arguments are wrong.
    """
    model = _CALLS.get(call.name)
    if model is None:
        known = ", ".join(_CALLS)
        raise CallRefused(f"there is no tool {call.name[:50]}; there are {known}")
    arguments = {
        scrub(name): scrub(value) if isinstance(value, str) else value
        for name, value in call.arguments.items()
    }
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        problems = [_problem(entry["type"], str(entry["loc"][0])) for entry in error.errors()]
        takes = ", ".join(model.model_fields)
        raise CallRefused(f"{call.name} takes {takes}; {'; '.join(problems[:5])}") from None


def _problem(kind: str, name: str) -> str:
    if kind == "missing":
        return f"{name} is missing"
    if kind == "extra_forbidden":
        return f"there is no {name[:50]}"
    expected = "a whole number from 1" if name in _LINES else "a string"
    return f"{name} must be {expected}"


def _without_titles(schema: JsonObject) -> JsonObject:
    """Drop what a policy has no use for."""
    fields = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema["properties"].items()
    }
    return {"type": "object", "properties": fields, "required": schema["required"]}
