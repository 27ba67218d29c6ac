"""Whether what a configuration names is there: environments, engines, the model's files."""

import difflib
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from loopwright.adapters.model_directory import model_problem
from loopwright.cli.config_problems import Problem
from loopwright.cli.strict_yaml import Document
from loopwright.contracts.configs import PICO, LoopConfig
from loopwright.contracts.failures import UserError
from loopwright.contracts.tasks import Split
from loopwright.core.curriculum import drawable, shares, task_weights
from loopwright.embedded.options import default_model
from loopwright.environments.base import Environment
from loopwright.environments.registry import build_environment


def reference_problems(
    config: LoopConfig, document: Document, *, engines: Collection[str] = ()
) -> list[Problem]:
    """Check each environment with its options, the model directory, and the engines.

    Args:
        config: what the file says.
        document: the file, for its lines.
        engines: names of all engines of the platform; empty where they are not known.
    """
    return [
        *_environments(config, document),
        *_model(config, document),
        *_engines(config, document, engines),
    ]


def _environments(config: LoopConfig, document: Document) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, environment in enumerate(config.environments):
        name = f"environments[{index}]"
        if environment.id in seen:
            line = document.line_of(("environments", index, "id"))
            yield Problem(line, f"{name}.id: {environment.id} is listed twice")
        seen.add(environment.id)
        try:
            built = build_environment(environment)
        except UserError as error:
            yield Problem(document.line_of(("environments", index)), f"{name}: {error}")
            continue
        for problem in _shortages(config, index, built):
            yield Problem(document.line_of(("environments", index)), f"{name}: {problem}")


def _shortages(config: LoopConfig, index: int, environment: Environment) -> Iterator[str]:
    """Say which split has fewer tasks than the environment's share of what is asked for."""
    asked = config.environments
    for split, key, total in _tasks_asked(config):
        share = shares(task_weights(asked, split), total)[index]
        there = len(drawable(environment.list_tasks(split), asked[index], split))
        if share > there:
            yield f"expected at least {share} {split} tasks for {key} ({total}), got {there}"


def _tasks_asked(config: LoopConfig) -> Iterator[tuple[Split, str, int]]:
    if config.num_iterations != 0:
        yield "train", "iteration.num_tasks", config.iteration.num_tasks
    evaluation = config.evaluation
    if evaluation.at_start or evaluation.at_end or evaluation.every:
        yield "heldout", "evaluation.num_tasks", evaluation.num_tasks


def _model(config: LoopConfig, document: Document) -> Iterator[Problem]:
    if problem := model_problem(model_directory(config)):
        yield Problem(
            document.line_of(("policy", "model")),
            f"policy.model: {problem}; expected {PICO} or a model directory "
            f"(`loopwright policy build DIR` makes one)",
        )


def _engines(config: LoopConfig, document: Document, known: Collection[str]) -> Iterator[Problem]:
    for index, engine in enumerate(config.engines):
        if known and engine.name not in known:
            near = difflib.get_close_matches(engine.name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            yield Problem(
                document.line_of(("engines", index, "name")),
                f"engines[{index}].name: expected an engine of the platform "
                f"({', '.join(sorted(known))}), got {engine.name!r}{hint}",
            )


def model_directory(config: LoopConfig) -> Path:
    """Name the directory of the policy's model; ``~`` is somebody's home folder."""
    if config.policy.model == PICO:
        return default_model()
    path = Path(config.policy.model)
    with suppress(RuntimeError):  # nobody of that name
        return path.expanduser()
    return path
