"""Configurations from YAML files, read strictly: all problems of a file at once."""

import copy
import json
from collections.abc import Collection
from pathlib import Path

from pydantic import ValidationError, model_validator

from loopwright.cli.config_budgets import budget_problems
from loopwright.cli.config_problems import Problem, leave_out, problems_of
from loopwright.cli.config_references import model_directory, reference_problems
from loopwright.cli.strict_yaml import Document, YamlProblem, read_yaml, show
from loopwright.contracts.configs import PICO, LoopConfig, PolicyConfig
from loopwright.contracts.failures import UserError

MAX_BYTES = 64 * 1024


def read_config(path: Path, *, engines: Collection[str] = ()) -> LoopConfig:
    """Read the configuration of a loop.

    Args:
        path: the YAML file.
        engines: names of all engines of the platform; empty where they are not known.

    Raises:
        UserError: the file has problems; the message has a line for each.
    """
    config, problems = _examine(path, engines)
    if config is None or problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UserError(f"{path} is not a configuration of a loop:\n{lines}")
    return _with_absolute_model(LoopConfig.model_validate(config.model_dump()))


def find_problems(path: Path) -> list[str]:
    """Name all problems of a configuration: ``FILE:LINE: key: expected ..., got ...``.

    Raises:
        UserError: the file cannot be read.
    """
    return _examine(path, engines=())[1]


def _examine(path: Path, engines: Collection[str]) -> tuple[LoopConfig | None, list[str]]:
    """Give the configuration, when it can be read at all, and every problem of the file."""
    try:
        document = read_yaml(_text(path))
    except YamlProblem as error:
        return None, [f"{path}:{error.line}: {error}"]
    problems = [Problem(line, text) for line, text in document.problems]
    if not isinstance(document.value, dict):
        got = "an empty file" if document.value is None else show(document.value)
        problems.append(Problem(1, f"expected a mapping of keys, got {got}"))
        return None, _lines(path, problems)
    config, found = _validated(document)
    problems += found
    if config is not None:
        problems += reference_problems(config, document, engines=engines)
        problems += budget_problems(config, model_directory(config), document)
    return config, _lines(path, problems)


class _UncheckedConfig(LoopConfig):
    """A configuration whose keys need not fit each other, so that all else is checked too."""

    @model_validator(mode="after")
    def check_budgets(self) -> "_UncheckedConfig":
        return self


def _validated(document: Document) -> tuple[LoopConfig | None, list[Problem]]:
    """Validate; what is wrong is left out, so that the checks over several keys run too."""
    problems: list[Problem] = []
    value = copy.deepcopy(document.value)
    while True:
        try:
            return _UncheckedConfig.model_validate_json(json.dumps(value), strict=True), problems
        except ValidationError as error:
            problems += problems_of(error, document)
            if not leave_out(value, error):
                return None, problems


def _lines(path: Path, problems: list[Problem]) -> list[str]:
    return [f"{path}:{line}: {text}" for line, text in sorted(set(problems))]


def _with_absolute_model(config: LoopConfig) -> LoopConfig:
    """Name the model directory in full: workers run in folders of their own."""
    if config.policy.model == PICO:
        return config
    policy = PolicyConfig(model=str(model_directory(config).resolve()))
    return config.model_copy(update={"policy": policy})


def _text(path: Path) -> str:
    """Read a text file of bounded size."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except IsADirectoryError as error:
        raise UserError(f"{path}: expected a YAML file, got a directory") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{str(path)!r}: not the name of a file: {error}") from error
    if len(data) > MAX_BYTES:
        raise UserError(f"{path}: expected a configuration of at most {MAX_BYTES} bytes, got more")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}:{line}: expected UTF-8 text, got the byte 0x{data[error.start]:02x}"
        ) from error
