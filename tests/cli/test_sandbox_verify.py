"""The command ``loopwright sandbox verify``, on a store with an episode that was really played."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from loopwright.activities.episode.recording_jail import RecordingJail
from loopwright.adapters.artifacts import keep
from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.workspaces import Workspaces
from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.commands import MAX_STDIN_BYTES, CommandRecord
from loopwright.contracts.turns import TurnHead
from loopwright.contracts.workspaces import MIB, PYTHON, CommandRequest, Strict, Workspace
from loopwright.core.protocols import ObjectStore
from loopwright.trajectories import codec
from loopwright.trajectories.turn_log import START, TurnLog
from tests.adapters.jails import needs_jails
from tests.servers import ACCESS_KEY, SECRET_KEY, free_port, open_store, s3_server
from tests.trajectories.records import record
from tests.trajectories.test_codec import TRAJECTORY

EPISODE = "iteration/000001/task/program_steps.t/episode/0"
UID, OTHER_UID = "0123456789ab", "ba9876543210"
GIVEN = Workspace.of({"given": b"1"})
PLAIN = CommandRequest(argv=("/bin/sh", "-c", "cat given; echo 2 > made; exit 3"))
LONG = CommandRequest(argv=("/usr/bin/wc", "-c"), stdin=b"\xff" * 100_000)
ENTROPY = (*PYTHON, "-c", "import os, time; print(os.urandom(8), time.time())")
STRICT = CommandRequest(argv=ENTROPY, strict=Strict(seed=7))


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform of which the command needs the store only."""

    folder: Path
    store: ObjectStore
    variables: dict[str, str]

    def played(self, *turns: tuple[CommandRequest, ...], loop: str) -> TurnHead:
        """Let an environment run these commands, a tuple a turn."""
        with LocalJail(self.folder / "jails", num_slots=1) as jail:
            return self.commit([self._run(jail, requests) for requests in turns], loop=loop)

    def commit(
        self,
        turns: list[tuple[CommandRecord, ...]],
        *,
        loop: str,
        uid: str = UID,
        parent: TurnHead = START,
    ) -> TurnHead:
        log = TurnLog(self.store, f"loop/{loop}/{uid}/{EPISODE}", "f")
        head = parent
        for commands in turns:
            made = record(head.num_turns, parent=head.digest, commands=commands)
            head = log.commit(made)
        return head

    def grade(self, head: TurnHead, *requests: CommandRequest, loop: str) -> ArtifactRef:
        """Let a grader run these commands on the state that a head leads to."""
        grading: tuple[CommandRecord, ...] = ()
        if requests:
            with LocalJail(self.folder / "jails", num_slots=1) as jail:
                grading = self._run(jail, requests, max_stdin_bytes=0)
        changes = {"head": head.digest, "turn_rewards": (0.0,) * head.num_turns}
        graded = TRAJECTORY.model_copy(update={**changes, "grading": grading})
        return keep(
            self.store,
            codec.encode(graded),
            prefix=f"loop/{loop}/{UID}/{EPISODE}",
            name="trajectory",
            suffix=".json.gz",
            kind="trajectory",
        )

    def verify(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = (sys.executable, "-m", "loopwright.cli", "sandbox", "verify", *words)
        environment = {**os.environ, **self.variables}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, env=environment
        )
        assert "Traceback" not in done.stderr
        return done

    def _run(
        self,
        jail: LocalJail,
        requests: tuple[CommandRequest, ...],
        max_stdin_bytes: int = MAX_STDIN_BYTES,
    ) -> tuple[CommandRecord, ...]:
        recording = RecordingJail(jail, max_stdin_bytes=max_stdin_bytes)
        for request in requests:
            recording.run(GIVEN, request)
        workspaces = Workspaces(self.store, self.folder / "cache", max_bytes=MIB)
        for workspace in recording.workspaces:
            workspaces.keep(workspace)
        return recording.commands


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("platform")
    with s3_server(folder, port := free_port()):
        variables = {
            "LOOPWRIGHT_TEMPORAL_ADDRESS": "127.0.0.1:9",
            "LOOPWRIGHT_S3_ENDPOINT": f"http://127.0.0.1:{port}",
            "LOOPWRIGHT_S3_BUCKET": "tests",
            "LOOPWRIGHT_S3_ACCESS_KEY": ACCESS_KEY,
            "LOOPWRIGHT_S3_SECRET_KEY": SECRET_KEY,
        }
        yield Platform(folder, open_store(port), variables)


pytestmark = pytest.mark.s3


@pytest.mark.nsjail
@needs_jails
def test_recorded_commands_come_out_equal_as_often_as_they_are_run(platform: Platform) -> None:
    platform.played((PLAIN, LONG), (), (STRICT,), loop="equal")
    done = platform.verify("--json", "--repeat", "2", f"loop/equal/{EPISODE}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["episode"] == f"loop/equal/{UID}/{EPISODE}"
    commands = found["commands"]
    assert [(each["turn"], each["command"]) for each in commands] == [(0, 0), (0, 1), (2, 0)]
    assert [each["result"] for each in commands] == ["equal"] * 3
    assert [len(each["runs"]) for each in commands] == [2, 2, 2]
    assert commands[0]["recorded"]["exit_code"] == 3
    assert commands[0]["recorded"]["workspace"] != GIVEN.digest


@pytest.mark.nsjail
@needs_jails
def test_program_that_reads_entropy_differs_and_is_said_not_to_be_strict(
    platform: Platform,
) -> None:
    platform.played((PLAIN, CommandRequest(argv=ENTROPY)), loop="random")
    done = platform.verify(f"loop/random/{EPISODE}")
    assert done.returncode == 1
    not_graded, header, first, second, *notes = done.stdout.splitlines()
    assert not_graded.startswith("not graded")
    assert header.split() == ["turn", "strict", "result", "command"]
    assert first.split()[:4] == ["0", "no", "equal", "/bin/sh"]
    assert second.split()[:4] == ["0", "no", "differs:", "stdout"]
    assert notes[0] == "2 commands of 1 turn, each run once: 1 equal, 1 different, 0 not run"
    assert "clock or entropy" in notes[1]


@pytest.mark.nsjail
@needs_jails
@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("exit", {"exit_code": 0}),
        ("stdout", {"stdout_sha256": "0" * 64}),
        ("stderr", {"num_stderr_bytes": 1}),
        ("workspace", {"workspace": "0" * 64}),
        ("timing", {"timed_out": True, "exit_code": None}),
    ],
)
def test_record_that_says_otherwise_is_seen(
    platform: Platform, part: str, change: dict[str, object]
) -> None:
    platform.played((PLAIN,), loop=f"honest-{part}")
    log = TurnLog(platform.store, f"loop/honest-{part}/{UID}/{EPISODE}", "f")
    (command,) = log.deepest().records[0].commands
    changed = command.model_copy(update={"outcome": command.outcome.model_copy(update=change)})
    platform.commit([(changed,)], loop=f"changed-{part}")
    done = platform.verify("--json", f"loop/changed-{part}/{EPISODE}")
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)["commands"]
    assert (found["result"], found["parts"]) == ("differs", [part])


@pytest.mark.nsjail
@needs_jails
def test_command_whose_files_are_gone_is_not_run(platform: Platform) -> None:
    platform.played((PLAIN,), loop="whole")
    log = TurnLog(platform.store, f"loop/whole/{UID}/{EPISODE}", "f")
    (command,) = log.deepest().records[0].commands
    lost = command.model_copy(update={"workspace": "0" * 64})
    platform.commit([(lost,)], loop="lost")
    done = platform.verify(f"loop/lost/{EPISODE}")
    assert done.returncode == 1
    assert "not run" in done.stdout
    assert f"workspace {'0' * 64} is not in the store" in done.stdout
    assert "restore it from a copy of the bucket" in done.stdout


@pytest.mark.nsjail
@needs_jails
def test_one_turn_alone_can_be_verified(platform: Platform) -> None:
    platform.played((PLAIN,), (STRICT,), loop="turns")
    found = json.loads(platform.verify("--json", "--turn", "1", f"loop/turns/{EPISODE}").stdout)
    assert [each["turn"] for each in found["commands"]] == [1]


@pytest.mark.nsjail
@needs_jails
def test_commands_of_grading_come_out_equal_too(platform: Platform) -> None:
    hidden = CommandRequest(argv=("/usr/bin/wc", "-c"), stdin=b"hidden", collect=False)
    head = platform.played((PLAIN,), loop="graded")
    platform.grade(head, hidden, loop="graded")
    done = platform.verify(f"loop/graded/{EPISODE}")
    assert done.returncode == 0, done.stderr
    _, turn, grading, total = done.stdout.splitlines()
    assert turn.split()[:3] == ["0", "no", "equal"]
    assert grading.split() == ["grading", "no", "equal", "/usr/bin/wc", "-c"]
    assert total.startswith("2 commands of 1 turn and grading, each run once: 2 equal")
    found = json.loads(platform.verify("--json", f"loop/graded/{EPISODE}").stdout)
    assert found["is_graded"]
    assert [(each["turn"], each["is_grading"]) for each in found["commands"]] == [
        (0, False),
        (None, True),
    ]
    one = json.loads(platform.verify("--json", "--turn", "0", f"loop/graded/{EPISODE}").stdout)
    assert [each["is_grading"] for each in one["commands"]] == [False]


def test_episode_that_still_runs_is_said_not_to_be_graded(platform: Platform) -> None:
    platform.commit([()], loop="running")
    done = platform.verify("--json", f"loop/running/{EPISODE}")
    assert done.returncode == 0
    assert "the episode still runs, ended without a grade" in done.stderr
    found = json.loads(done.stdout)
    assert (found["is_graded"], found["num_turns"]) == (False, 1)


def test_graded_turn_that_is_damaged_is_named_with_what_to_do(platform: Platform) -> None:
    head = platform.commit([()], loop="damaged")
    platform.grade(head, loop="damaged")
    (key,) = platform.store.list_keys(f"loop/damaged/{UID}/{EPISODE}/turn/")
    platform.store.put(key, b"damaged")
    done = platform.verify(f"loop/damaged/{EPISODE}")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"turn record {key} is damaged" in done.stderr
    assert "restore" in done.stderr


def test_episode_without_commands_is_said_to_have_none(platform: Platform) -> None:
    platform.grade(platform.commit([(), ()], loop="idle"), loop="idle")
    done = platform.verify(f"loop/idle/{EPISODE}")
    assert done.returncode == 0
    assert done.stdout == "2 turns without a recorded command: nothing was run\n"


def test_episode_of_two_loops_of_one_name_must_be_told_apart(platform: Platform) -> None:
    platform.commit([()], loop="twice")
    platform.commit([()], loop="twice", uid=OTHER_UID)
    done = platform.verify(f"loop/twice/{EPISODE}")
    assert (done.returncode, done.stdout) == (2, "")
    for uid in (UID, OTHER_UID):
        assert f"loop/twice/{uid}/{EPISODE}" in done.stderr
    assert platform.verify(f"loop/twice/{UID}/{EPISODE}").returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((f"loop/nobody/{EPISODE}",), "no turn of an episode loop/nobody/"),
        (("digits",), "expected an id as the Web UI shows it"),
        (("--turn", "1", f"loop/short/{EPISODE}"), "--turn: expected at most 0"),
        (("--turn", "-1", f"loop/short/{EPISODE}"), "--turn"),
        (("--repeat", "0", f"loop/short/{EPISODE}"), "--repeat"),
    ],
)
def test_what_cannot_be_verified_is_bad_input(
    platform: Platform, words: tuple[str, ...], expected: str
) -> None:
    platform.commit([()], loop="short")
    done = platform.verify(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr


def test_no_platform_is_bad_input(platform: Platform, tmp_path: Path) -> None:
    nowhere = Platform(tmp_path, platform.store, {})
    done = nowhere.verify(f"loop/short/{EPISODE}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no platform runs in .loopwright" in done.stderr


def test_store_that_is_down_is_a_failure_of_the_platform(
    platform: Platform, tmp_path: Path
) -> None:
    endpoint = {"LOOPWRIGHT_S3_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    done = Platform(tmp_path, platform.store, platform.variables | endpoint).verify(
        f"loop/short/{EPISODE}"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "S3" in done.stderr
