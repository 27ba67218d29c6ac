"""YAML as people mean it: 1e-6 is a number, yes is a word, and nothing is guessed or repeated.

Scalars follow the core schema of YAML 1.2, not the rules of YAML 1.1 that PyYAML resolves by.
Anchors, aliases and tags are refused, so a small file is a small value.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]

MAX_DEPTH = 16

_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_HALF = re.compile("[\ud800-\udfff]")
"""A surrogate, which only escapes can write."""
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class YamlProblem(ValueError):
    """The text is not YAML."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Document:
    """The value of a file, and where its parts stand."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    """Line of each key and list entry, from 1."""
    problems: list[tuple[int, str]] = field(default_factory=list)
    """Line and message of what was left out of the value."""

    def line_of(self, path: Path) -> int:
        """Give the line of a part, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> Document:
    """Read one YAML document.

    Raises:
        YamlProblem: the text is not YAML, or is nested too deeply.
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        context = f" {error.context}" if error.context else ""
        raise YamlProblem(line, f"not YAML: {error.problem} at column {column}{context}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise YamlProblem(line, f"not YAML: {error.reason}") from error
    document = Document(problems=loader.problems)
    if root is not None:
        document.value = _value(root, (), document)
    return document


def show(value: object) -> str:
    """Write a value as it would stand in the file, shortly."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def key_path(path: Path) -> str:
    """Write a path: ``environments[0].weight``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class _Loader(yaml.SafeLoader):
    """Composes nodes; notes anchors, aliases and tags, and leaves them out."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.problems: list[tuple[int, str]] = []
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            alias: Any = self.get_event()  # type: ignore[no-untyped-call]
            self._note(alias, f"*{alias.anchor}: aliases are not taken; write the value out")
            return yaml.ScalarNode("", "", alias.start_mark, alias.end_mark)
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if event.anchor is not None:
            self._note(event, f"&{event.anchor}: anchors are not taken; write the value out")
            event.anchor = None
        if event.tag is not None:
            self._note(event, f"{event.tag}: tags are not taken; leave it out")
        if _HALF.search(getattr(event, "value", "")):
            line = event.start_mark.line + 1
            raise YamlProblem(line, f"half a character stands alone in {event.value!a}")
        return self._compose_deeper(parent, index)

    def _compose_deeper(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self._depth == MAX_DEPTH:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            line = event.start_mark.line + 1
            raise YamlProblem(line, f"nested deeper than {MAX_DEPTH}")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _note(self, event: Any, message: str) -> None:
        self.problems.append((event.start_mark.line + 1, message))


def _value(node: yaml.Node, path: Path, document: Document) -> Any:
    document.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        return _sequence(node, path, document)
    is_plain = isinstance(node, yaml.ScalarNode) and node.style is None
    return _scalar(node.value) if is_plain else node.value


def _sequence(node: yaml.SequenceNode, path: Path, document: Document) -> list[Any]:
    entries = [((*path, index), item) for index, item in enumerate(node.value)]
    values = [(inner, _value(item, inner, document)) for inner, item in entries]
    return [value for inner, value in values if _is_finite(value, inner, document)]


def _mapping(node: yaml.MappingNode, path: Path, document: Document) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode) or not key_node.value:
            document.problems.append((line, f"{key_path(path) or 'file'}: a key is not a name"))
            continue
        key = key_node.value
        inner = (*path, key)
        if key in values:
            first = document.lines[inner]
            text = f"{key_path(inner)}: given twice, on line {first} and on line {line}"
            document.problems.append((line, text))
            continue
        document.lines[inner] = line
        value = _value(value_node, inner, document)
        if _is_finite(value, inner, document):
            values[key] = value
    return values


def _is_finite(value: Any, path: Path, document: Document) -> bool:
    """Tell whether a value is no infinite number, and note it if it is."""
    if not isinstance(value, float) or math.isfinite(value):
        return True
    text = f"{key_path(path)}: expected a finite number, got {value}"
    document.problems.append((document.line_of(path), text))
    return False


def _scalar(text: str) -> Any:
    """Resolve a plain scalar by the core schema; what is nothing else is text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "", 1))
    if _FLOAT.fullmatch(text) and not re.fullmatch(r"[-+]?0[0-9]+", text):
        return float(text)
    return text
