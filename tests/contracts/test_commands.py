import pytest

from loopwright.contracts.commands import CommandOutcome, CommandRecord
from loopwright.contracts.workspaces import CommandRequest, Strict
from tests.trajectories.records import record

OUTCOME = CommandOutcome(stdout_sha256="a" * 64, stderr_sha256="b" * 64)


def recorded(**fields: object) -> CommandRecord:
    request = CommandRequest.model_validate({"argv": ("true",), **fields})
    return CommandRecord(request=request, workspace="c" * 64, outcome=OUTCOME)


@pytest.mark.parametrize(
    "fields",
    [
        {"stdin": bytes(range(256))},
        {"argv": ("cat", "name-\udcff", "é")},
        {"argv": ("cat", "\ud800")},
        {"argv": ("\0", "\0AAAA", "")},
        {"env": {"A\udc80": "\udc81", "B": "\0"}},
        {"strict": Strict(seed=(1 << 64) - 1), "base": "d" * 64, "packages": ("e" * 64,)},
    ],
)
def test_command_of_any_bytes_survives_its_record(fields: dict[str, object]) -> None:
    made = recorded(**fields)
    assert CommandRecord.model_validate_json(made.model_dump_json()) == made


def test_plain_words_are_written_as_they_are() -> None:
    assert '"argv":["echo","é"]' in recorded(argv=("echo", "é")).model_dump_json()


def test_turn_that_was_recorded_without_commands_has_none() -> None:
    made = record()
    text = made.model_dump_json(exclude={"commands"})
    assert type(made).model_validate_json(text).commands == ()
