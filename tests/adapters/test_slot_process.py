"""A slot's launcher is told what it can take, refuses the rest, and goes on."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.plans import MAX_PACKAGES, Plan
from loopwright.adapters.slot_process import MAX_BYTES, MAX_WORDS, SlotProcess
from loopwright.contracts.failures import SandboxUnavailable, TaskError
from loopwright.contracts.workspaces import CommandRequest, Workspace
from tests.adapters.host_state import end_jail
from tests.adapters.jails import needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]
TRUE = CommandRequest(argv=("/bin/true",))


@pytest.fixture(scope="module")
def jail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJail]:
    with LocalJail(tmp_path_factory.mktemp("jails") / "root", num_slots=1) as opened:
        yield opened


@pytest.fixture
def process(jail: LocalJail) -> SlotProcess:
    """A launcher whose jail has ended."""
    assert jail.run(Workspace(), TRUE).result.exit_code == 0
    (slot,) = jail._house.slots
    end_jail(slot.process)
    return slot.process


@pytest.mark.parametrize(
    ("message", "num_descriptors", "said"),
    [
        (b"P" + b"x\0" * MAX_BYTES, 2, b"a message of too many bytes"),
        (b"P" + b"x" * MAX_BYTES, 2, b"a message of too many bytes"),
        (b"P" + b"x\0" * (MAX_WORDS + 1), 2, b"a message of too many words"),
        (b"Px\0", 3, b"a message with too many descriptors"),
        (b"Px\0", 1, b"a message with too few descriptors"),
        (b"Px\0", 0, b"a message with too few descriptors"),
    ],
    ids=["bytes", "one byte", "words", "three", "one", "none"],
)
def test_message_that_is_cut_is_refused_and_the_launcher_goes_on(
    jail: LocalJail, process: SlotProcess, message: bytes, num_descriptors: int, said: bytes
) -> None:
    pid = process.pid
    assert pid is not None
    before = descriptors_of(pid)
    with closing(socket.socket(fileno=os.dup(process.fileno()))) as line:
        socket.send_fds(line, [message], [line.fileno()] * num_descriptors)
        assert [line.recv(100), line.recv(100)] == [b"E" + said, b"G"]
    assert descriptors_of(pid) == before
    assert jail.run(Workspace(), TRUE).result.exit_code == 0
    assert process.pid == pid


def test_jail_that_is_let_go_ends_before_the_next_is_made(jail: LocalJail) -> None:
    (slot,) = jail._house.slots
    plan = slot.process.plan
    assert plan is not None
    for _ in range(5):
        slot.renew(plan)
    slot.process.wait_until_ready()
    assert num_jails(slot.process) == 1
    assert jail.run(Workspace(), TRUE).result.exit_code == 0


def test_message_that_is_cut_ends_the_jail_that_was_let_go(jail: LocalJail) -> None:
    assert jail.run(Workspace(), TRUE).result.exit_code == 0
    (slot,) = jail._house.slots
    waiting = slot.process.wait_until_ready()
    with closing(socket.socket(fileno=os.dup(slot.process.fileno()))) as line:
        line.send(b"P" + bytes(MAX_BYTES))
    while not waiting.is_gone:
        slot.process.read_message()
    assert num_jails(slot.process) == 0
    slot.reset()
    assert jail.run(Workspace(), TRUE).result.exit_code == 0


@pytest.mark.parametrize("words", [["x" * MAX_BYTES], ["x"] * (MAX_WORDS + 1)])
def test_more_than_the_launcher_takes_is_never_sent(
    jail: LocalJail, process: SlotProcess, words: list[str]
) -> None:
    with pytest.raises(SandboxUnavailable, match=f"expected at most {MAX_BYTES} in {MAX_WORDS}"):
        process.prepare(Plan(), words)
    assert process.plan is None
    assert jail.run(Workspace(), TRUE).result.exit_code == 0


def test_jail_like_the_one_before_is_not_thought_out_anew(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with LocalJail(root, num_slots=1, launcher="nsjail") as jail:

        def written_for(request: CommandRequest) -> int:
            assert jail.run(Workspace(), request).result.exit_code == 0
            (path,) = root.glob("*/slot0/jail.cfg")
            return path.stat().st_mtime_ns

        first, again = written_for(TRUE), written_for(TRUE)
        other = written_for(TRUE.model_copy(update={"has_loopback": True}))
        assert first == again < other < written_for(TRUE)


def test_command_with_too_many_packages_is_refused_by_their_number(jail: LocalJail) -> None:
    packages = tuple(f"{number:064x}" for number in range(MAX_PACKAGES + 1))
    with pytest.raises(TaskError, match="asks for 65 package folders, expected at most 64"):
        jail.run(Workspace(), TRUE.model_copy(update={"packages": packages}))
    assert jail.run(Workspace(), TRUE).result.exit_code == 0


def num_jails(process: SlotProcess) -> int:
    return len(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())


def descriptors_of(pid: int) -> list[str]:
    return sorted(path.name for path in Path(f"/proc/{pid}/fd").iterdir())
