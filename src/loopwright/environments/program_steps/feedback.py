"""What the policy reads after a wrong answer."""

from loopwright.contracts.tasks import Case

_MAX_VALUE_CHARS = 40

NO_FUNCTION = "No function f was found. Try again."


def describe_failure(case: Case, got: str) -> str:
    """Say which input gave what instead of what, as in ``f(3) gave 7, not 10``."""
    arguments = ", ".join(repr(argument) for argument in case.args)
    return f"f({arguments}) gave {_short(got)}, not {case.expected!r}. Try again."


def _short(text: str) -> str:
    line = text.replace("\n", " ")
    return line if len(line) <= _MAX_VALUE_CHARS else line[: _MAX_VALUE_CHARS - 3] + "..."
