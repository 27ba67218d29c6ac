"""Environments by id: the built-in ones and those of other packages' entry points."""

import difflib
from collections.abc import Callable
from importlib.metadata import entry_points

from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.failures import UserError
from loopwright.environments.base import Environment
from loopwright.environments.program_steps import ProgramSteps

ENTRY_POINT_GROUP = "loopwright.environments"
"""Entry points are callables that take an ``EnvironmentConfig`` and give an ``Environment``."""

_BUILT_IN: dict[str, Callable[[EnvironmentConfig], Environment]] = {ProgramSteps.id: ProgramSteps}


def build_environment(config: EnvironmentConfig) -> Environment:
    """Build the environment that a configuration names.

    Raises:
        UserError: there is none of this id, or its options are wrong.
    """
    if config.id in _BUILT_IN:
        return _BUILT_IN[config.id](config)
    others = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if config.id in others:
        environment: Environment = others[config.id].load()(config)
        return environment
    known = sorted({*_BUILT_IN, *others})
    near = difflib.get_close_matches(config.id, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UserError(f"environment {config.id!r} does not exist; there are {', '.join(known)}{hint}")
