"""The Temporal server's settings, read from ``deploy/temporal``."""

import json
from pathlib import Path
from typing import Any

import yaml

import loopwright

_FOLDER = Path(loopwright.__file__).parent / "deploy" / "temporal"


def search_attributes() -> dict[str, str]:
    """Give the type of each search attribute that workflows set, by name."""
    attributes: dict[str, str] = _read("search-attributes.yaml")
    return attributes


def dynamic_config() -> dict[str, str]:
    """Give each setting's value as JSON, the form that the development server's flag takes."""
    entries: dict[str, list[dict[str, Any]]] = _read("dynamic-config.yaml")
    return {name: json.dumps(values[0]["value"]) for name, values in entries.items()}


def server_arguments() -> list[str]:
    """Build the development server's flags for both."""
    arguments: list[str] = []
    for name, value in dynamic_config().items():
        arguments += ["--dynamic-config-value", f"{name}={value}"]
    for name, kind in search_attributes().items():
        arguments += ["--search-attribute", f"{name}={kind}"]
    return arguments


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((_FOLDER / name).read_text())
    return content
