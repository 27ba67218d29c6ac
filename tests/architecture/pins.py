"""Names and schemas that stored histories and records depend on.

``python -m tests.architecture.pins`` writes them anew, after a change that means to change them.
"""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from loopwright import contracts
from loopwright.contracts.base import Contract
from tests.architecture.targets import WORKFLOWS, declared_activities, workflow_definition

PATH = Path(__file__).with_name("schemas.json")


def current() -> dict[str, Any]:
    """Collect the schemas and names as the code has them."""
    return {
        "activities": sorted(declared_activities()),
        "workflows": {
            str(definition.name): {
                "queries": _names(definition.queries),
                "signals": _names(definition.signals),
                "updates": _names(definition.updates),
            }
            for definition in map(workflow_definition, WORKFLOWS)
        },
        "schemas": _schemas(),
    }


def _names(handlers: Any) -> list[str]:
    return sorted(str(name) for name in handlers)


def _schemas() -> dict[str, Any]:
    for module in pkgutil.iter_modules(contracts.__path__, contracts.__name__ + "."):
        importlib.import_module(module.name)
    models = [m for m in _subclasses(Contract) if m.__module__.startswith(contracts.__name__)]
    models.sort(key=lambda model: model.__name__)
    _, document = models_json_schema([(model, "validation") for model in models])
    schemas: dict[str, Any] = _without_prose(document["$defs"])
    return schemas


def _subclasses(model: type[Contract]) -> Iterator[type[Contract]]:
    """Walk down to the models that have fields; those without are bases of others."""
    for each in model.__subclasses__():
        if each.model_fields:
            yield each
        yield from _subclasses(each)


def _without_prose(schema: Any) -> Any:
    """Drop titles and docstrings, which may change freely."""
    if isinstance(schema, list):
        return [_without_prose(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    prose = {key for key in ("title", "description") if isinstance(schema.get(key), str)}
    return {key: _without_prose(item) for key, item in schema.items() if key not in prose}


def text() -> str:
    """Write the pins as they are stored."""
    return json.dumps(current(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(text())
