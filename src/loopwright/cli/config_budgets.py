"""Whether the budgets of a configuration fit each other, the engine, the tasks and the clock."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from loopwright.adapters.model_directory import max_positions, model_problem
from loopwright.cli.config_problems import Problem
from loopwright.cli.strict_yaml import Document
from loopwright.contracts.configs import EnvironmentConfig, LoopConfig
from loopwright.contracts.failures import LoopError, UserError
from loopwright.contracts.turns import Message
from loopwright.embedded.options import StackOptions
from loopwright.environments.registry import build_environment
from loopwright.workflows.options import TABLE

_TEMPLATE_TOKENS = 256
"""Far more than any chat template adds to an opening."""
_SHARE_FOR_COMMANDS = 0.9
"""Of the time of an activity; the rest is for files, the store and the jail itself."""

Opening = tuple[Message, ...]


def budget_problems(config: LoopConfig, directory: Path, document: Document) -> Iterator[Problem]:
    """Check the budgets.

    Args:
        config: what the file says.
        directory: the model's.
        document: the file, for its lines.
    """
    texts = chain(
        config.budget_problems(),
        _context(config, directory),
        _openings(config, directory),
        _commands(config),
    )
    for text in texts:
        # Each begins with the key that is to blame.
        key = text.partition(" ")[0].rstrip(":")
        yield Problem(document.line_of(tuple(key.split("."))), text)


def _context(config: LoopConfig, directory: Path) -> Iterator[str]:
    asked, longest = config.episode.max_tokens, max_positions(directory)
    served = StackOptions.model_fields["max_model_len"].default
    if longest is not None and asked > longest:
        yield (
            f"episode.max_tokens: expected at most {longest}, the positions in the model's "
            f"config.json, got {asked}"
        )
    elif config.profile == "embedded" and asked > served:
        yield (
            f"episode.max_tokens: expected at most {served}, the context of the engine that "
            f"`loopwright up` starts, got {asked}; for an engine with more, "
            f"set profile to cluster"
        )


def _openings(config: LoopConfig, directory: Path) -> Iterator[str]:
    """Say when not even the shortest opening leaves a token for a completion.

    Tokenizers take long to load: none is asked where no more tokens than bytes would do.
    """
    asked = config.episode.max_tokens
    shortest: Opening | None = None
    for opening in chain.from_iterable(map(_openings_of, config.environments)):
        if _num_bytes(opening) + _TEMPLATE_TOKENS < asked:
            return
        shortest = min(shortest or opening, opening, key=_num_bytes)
    if shortest is None or model_problem(directory):
        return
    try:
        needed = _num_tokens(shortest, directory)
    except (LoopError, OSError, ValueError, LookupError, TypeError) as error:
        yield f"policy.model: the tokenizer in {directory} cannot be used: {error}"
        return
    if needed >= asked:
        yield (
            f"episode.max_tokens: expected more than {needed}, the tokens that the shortest task "
            f"opens with, got {asked}"
        )


def _commands(config: LoopConfig) -> Iterator[str]:
    """Say when a command may take longer than the activity that waits for it."""
    whole = min(
        TABLE[name].start_to_close.total_seconds()
        for name in ("episode.take_turns", "episode.grade_episode")
    )
    longest, asked = whole * _SHARE_FOR_COMMANDS, config.episode.limits.wall_seconds
    if asked > longest:
        yield (
            f"episode.limits.wall_seconds: expected at most {longest:g}, since an episode must be "
            f"graded within {whole:g} s, got {asked:g}"
        )


def _openings_of(config: EnvironmentConfig) -> Iterator[Opening]:
    try:
        environment = build_environment(config)
    except UserError:
        return
    for split in ("train", "heldout"):
        for task in environment.list_tasks(split):
            yield environment.pose(environment.load_task(task.task_id)).messages


def _num_bytes(opening: Opening) -> int:
    return sum(len(message.content.encode("utf-8", "replace")) for message in opening)


def _num_tokens(opening: Opening, directory: Path) -> int:
    from loopwright.trajectories.rendering import Renderer

    return len(Renderer(directory).opening(opening))
