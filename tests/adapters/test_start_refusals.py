"""What a kernel would not start ends alike, whether an interpreter waits for it or not."""

from collections.abc import Iterator

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.start_refusals import MAX_BYTES, MAX_WORD_BYTES
from loopwright.contracts.workspaces import PYTHON, CommandRequest, CommandResult, Workspace
from tests.adapters.jails import needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]
CODE = "import os, sys; print(len(sys.argv), sum(map(len, sys.argv)), len(os.environ.get('V', '')))"
SERVED, ANEW = {"ANEW_PYTHON": "1"}, {"PYTHON_ANEW": "1"}
"""Variables of one length; the second is none that an interpreter that waits could heed."""
LONGEST = "x" * (MAX_WORD_BYTES - 1)
FIXED_BYTES = sum(len(word) + 1 + 8 for word in (*PYTHON, "-c", CODE, "PYTHON_ANEW=1"))
NUM_SHORT = (MAX_BYTES - FIXED_BYTES) // 10
"""Arguments of one letter that fit: each has a letter, an end mark and a pointer."""
NUM_LONG = (MAX_BYTES - FIXED_BYTES) // (MAX_WORD_BYTES + 8)


@pytest.fixture(scope="module", params=["native", "nsjail"])
def jail(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalJail]:
    root = tmp_path_factory.mktemp("jails") / "root"
    with LocalJail(root, num_slots=1, launcher=request.param) as opened:
        yield opened


@pytest.fixture(params=[SERVED, ANEW], ids=["warm", "cold"])
def fields(request: pytest.FixtureRequest) -> dict[str, str]:
    found: dict[str, str] = request.param
    return found


def run(jail: LocalJail, *words: str, **variables: str) -> CommandResult:
    request = CommandRequest(argv=(*PYTHON, "-c", CODE, *words), env=variables)
    return jail.run(Workspace(), request).result


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        ([LONGEST], ""),
        ([LONGEST] * NUM_LONG, ""),
        (["x"] * NUM_SHORT, ""),
        ([], "x" * (MAX_WORD_BYTES - len("V=") - 1)),
    ],
    ids=["long word", "most long words", "most words", "long variable"],
)
def test_longest_words_that_are_taken_reach_the_program(
    jail: LocalJail, fields: dict[str, str], words: list[str], variable: str
) -> None:
    result = run(jail, *words, **fields, **({"V": variable} if variable else {}))
    num_letters = sum(map(len, words)) + len("-c")
    assert (result.exit_code, result.stderr) == (0, b"")
    assert result.stdout.decode() == f"{len(words) + 1} {num_letters} {len(variable)}\n"


@pytest.mark.parametrize(
    ("words", "variables", "error"),
    [
        ([f"{LONGEST}x"], {}, "Argument list too long"),
        ([LONGEST] * (NUM_LONG + 1), {}, "Argument list too long"),
        (["x"] * (NUM_SHORT + 1), {}, "Argument list too long"),
        ([""] * 2_000_000, {}, "Argument list too long"),
        ([], {"V": LONGEST}, "Argument list too long"),
        (["a\0b"], {}, "Invalid argument"),
        ([], {"V": "a\0b"}, "Invalid argument"),
        ([], {"V\0": "a"}, "Invalid argument"),
        ([], {"V=W": "a"}, "Invalid argument"),
        ([], {"": "a"}, "Invalid argument"),
        (["\ud800"], {}, "Invalid or incomplete multibyte or wide character"),
    ],
    ids=map(str, range(11)),
)
def test_words_that_no_kernel_takes_are_a_start_error(
    jail: LocalJail,
    fields: dict[str, str],
    words: list[str],
    variables: dict[str, str],
    error: str,
) -> None:
    result = run(jail, *words, **fields, **variables)
    assert (result.exit_code, result.start_error) == (126, error)
    assert result.stderr.decode() == f"cannot execute '/usr/bin/python3': {error}\n"


def test_option_that_ends_like_a_file_is_an_option(jail: LocalJail, fields: dict[str, str]) -> None:
    request = CommandRequest(argv=(*PYTHON, "-mno.py"), env=fields)
    result = jail.run(Workspace.of({"-mno.py": b"print('file')"}), request).result
    assert (result.exit_code, result.stdout) == (1, b"")
    assert b"No module named 'no'" in result.stderr or b"No module named no" in result.stderr
