"""What the pools register, resolved for inspection."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from temporalio import activity, workflow

from loopwright.contracts import activities as declarations
from loopwright.workers.pools import POOLS

WORKFLOWS = sorted(target for pool in POOLS.values() for target in pool.workflows)
ACTIVITIES = sorted(target for pool in POOLS.values() for target in pool.activities)


def resolve(target: str) -> Any:
    """Import ``module:name`` or ``module:Class.method`` and return what it names."""
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def activity_name(body: Callable[..., Any]) -> str:
    """Give the name that Temporal knows an activity by."""
    definition = activity._Definition.must_from_callable(body)
    assert definition.name
    return definition.name


def workflow_definition(target: str) -> workflow._Definition:
    """Give what Temporal knows of a workflow."""
    return workflow._Definition.must_from_class(resolve(target))


def declared_activities() -> dict[str, Callable[..., Any]]:
    """Give the signature that workflows call, by activity name."""
    functions = [f for f in vars(declarations).values() if inspect.iscoroutinefunction(f)]
    return {activity_name(function): function for function in functions}
