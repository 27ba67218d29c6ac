"""What is wrong with a configuration's values, each as what was expected and what was there."""

import difflib
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from loopwright.cli.strict_yaml import Document, Path, key_path, show
from loopwright.contracts.base import first_errors
from loopwright.contracts.configs import LoopConfig


class Problem(NamedTuple):
    """One problem of a file; sorts by line."""

    line: int
    text: str


def problems_of(error: ValidationError, document: Document) -> list[Problem]:
    """Describe each error of a validation."""
    return [problem for details in first_errors(error) for problem in _describe(details, document)]


def leave_out(value: Any, error: ValidationError) -> bool:
    """Remove from ``value`` the parts that an error is about; tell whether there were any."""
    paths = {details["loc"] for details in error.errors(include_url=False)}
    removed = [_remove(value, path) for path in sorted(paths, key=_from_the_end)]
    return any(removed)


def _from_the_end(path: Path) -> list[tuple[int, str]]:
    """Sort later entries of a list first, so that the earlier keep their places."""
    return [(-part, "") if isinstance(part, int) else (0, part) for part in path]


def _remove(value: Any, path: Path) -> bool:
    for part in path[:-1]:
        value = value[part] if _has(value, part) else None
    if not path or not _has(value, path[-1]):
        return False
    del value[path[-1]]
    return True


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def _describe(details: ErrorDetails, document: Document) -> Iterator[Problem]:
    path: Path = details["loc"]
    line = document.line_of(path)
    if details["type"] == "extra_forbidden":
        yield from _unknown(path, details["input"], document)
    elif details["type"] == "value_error":
        # A check over several keys names them itself, the nearest to blame first.
        text = details["msg"].removeprefix("Value error, ")
        named = tuple(text.partition(" ")[0].split("."))
        yield Problem(document.line_of(named), text)
    else:
        expected = expectation(path) or details["msg"]
        yield Problem(
            line, f"{key_path(path) or 'file'}: expected {expected}, got {show(details['input'])}"
        )


def _unknown(path: Path, value: object, document: Document) -> Iterator[Problem]:
    """Say where an unknown key belongs, or which known one is nearest; its own keys too."""
    section, key = path[:-1], str(path[-1])
    yield Problem(document.line_of(path), f"{key_path(path)}: {_advice(section, key)}")
    if isinstance(value, Mapping) and not _homes(key):
        for inner in value:
            inner_path = (*path, str(inner))
            advice = _advice(("?",), str(inner))
            yield Problem(document.line_of(inner_path), f"{key_path(inner_path)}: {advice}")


def _advice(section: Path, key: str) -> str:
    homes = _homes(key)
    if homes:
        return f"unknown key here; {key} belongs under {' or '.join(homes)}"
    siblings = _siblings(section)
    near = difflib.get_close_matches(key, siblings, n=1, cutoff=0.6)
    if near:
        return f"unknown key; did you mean {key_path((*section, near[0]))}?"
    everywhere = {path[-1]: path for path in _paths()}
    far = difflib.get_close_matches(key, [str(name) for name in everywhere], n=1, cutoff=0.72)
    if far:
        return f"unknown key; did you mean {_written(everywhere[far[0]])}?"
    known = f"; known here: {', '.join(siblings)}" if siblings else ""
    return f"unknown key{known}"


def _homes(key: str) -> list[str]:
    """Name the sections that have a key."""
    return [_written(path[:-1]) or "the top level" for path in _paths() if path[-1] == key]


def _written(path: Path) -> str:
    return key_path(tuple(part for part in path if part != 0))


def _siblings(section: Path) -> list[str]:
    model = _model_at(section)
    return list(model.model_fields) if model else []


def _paths() -> Iterator[Path]:
    """List every key of a configuration."""
    yield from _paths_of(LoopConfig, ())


def _paths_of(model: type[BaseModel], prefix: Path) -> Iterator[Path]:
    for name, field in model.model_fields.items():
        yield (*prefix, name)
        inner, is_list = _section(field)
        if inner:
            yield from _paths_of(inner, (*prefix, name, 0) if is_list else (*prefix, name))


def _section(field: FieldInfo) -> tuple[type[BaseModel] | None, bool]:
    """Give the model of a section or of a list of sections, and which it is."""
    for annotation in (field.annotation, *get_args(field.annotation)):
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return annotation, annotation is not field.annotation
    return None, False


def _model_at(path: Path) -> type[BaseModel] | None:
    model: type[BaseModel] | None = LoopConfig
    for part in path:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part) if model else None
        model = _section(field)[0] if field else None
    return model


def expectation(path: Path) -> str | None:
    """Describe what a key takes, with its range; None when the path is no key."""
    names = [part for part in path if isinstance(part, str)]
    if not names:
        return "a mapping of keys"
    model = _model_at(tuple(names[:-1]))
    field = model.model_fields.get(names[-1]) if model else None
    if field is None:
        return None
    inner, is_list = _section(field)
    if inner:
        is_entry = is_list and isinstance(path[-1], int)
        return "a list of one or more entries" if is_list and not is_entry else "a mapping of keys"
    return f"{_kind(field.annotation)}{_range(field.metadata)}"


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(get_args(annotation))
    members = get_args(annotation)
    if NoneType in members:
        return " or ".join(_kind(member) for member in members if member is not NoneType) + (
            " or null"
        )
    names = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
    return names.get(annotation, "a mapping of keys")


def _range(metadata: list[Any]) -> str:
    parts = []
    for bound in metadata:
        if isinstance(bound, annotated_types.Gt):
            parts.append(f"above {bound.gt}")
        elif isinstance(bound, annotated_types.Ge):
            parts.append(f"at least {bound.ge}")
        elif isinstance(bound, annotated_types.Lt):
            parts.append(f"below {bound.lt}")
        elif isinstance(bound, annotated_types.Le):
            parts.append(f"at most {bound.le}")
        elif getattr(bound, "pattern", None):
            parts.append(f"of the form {bound.pattern}")
    return "".join(f", {part}" for part in parts)
