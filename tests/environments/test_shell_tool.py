"""The shell tool's words and requests, with a jail that runs nothing."""

import json
from typing import Any

import pytest

from loopwright.adapters.jail import FakeJail
from loopwright.contracts.failures import SandboxUnavailable, TaskError
from loopwright.contracts.turns import ToolCall
from loopwright.contracts.workspaces import MIB, CommandResult, Limits, Skipped, Workspace
from loopwright.core.protocols import JailRun
from loopwright.environments.shell_calls import (
    BashCall,
    ReadFileCall,
    WriteFileCall,
    describe_calls,
)
from loopwright.environments.shell_script import MAX_COMMAND_BYTES, Service
from loopwright.environments.shell_session import ShellSession
from loopwright.environments.shell_tool import ShellTool, ToolResult

FILES = Workspace.of({"a.py": b"x = 1\n"})
REPORT = b":start 2\0:strays \0"
LIMITS = Limits(wall_seconds=5, cpu_seconds=7, memory_bytes=64 * MIB, drain_bytes=MIB)


def run(result: CommandResult, **fields: Any) -> ToolResult:
    """Run a command that comes to this result."""
    done = result.model_copy(update={"limits": LIMITS})
    return ShellTool(jail=FakeJail.of([done]), limits=LIMITS, **fields).call(
        FILES, BashCall(command="x")
    )


def call(name: str, **arguments: Any) -> ToolResult:
    """Make a call that needs no jail."""
    tool = ShellTool(jail=FakeJail.of([]))
    return tool.call(FILES, ToolCall(name=name, arguments=arguments))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"exit_code": 0}, "exit code 0"),
        ({"exit_code": 1}, "exit code 1"),
        ({"exit_code": 200}, "exit code 200"),
        ({"exit_code": 139}, "exit code 139: ended by signal 11 (SIGSEGV)"),
        (
            {"exit_code": 137, "num_oom_kills": 1},
            "exit code 137: ended by signal 9 (SIGKILL); "
            "1 process was ended for using more than 64 MiB of memory together",
        ),
        (
            {"exit_code": 152},
            "exit code 152: ended by signal 24 (SIGXCPU), for using 7 s of processor time",
        ),
        ({"signal": 9}, "ended by signal 9 (SIGKILL)"),
        ({"signal": 40}, "ended by signal 40"),
        ({"timed_out": True, "wall_seconds": 5.001}, "timed out after 5 s"),
        (
            {"timed_out": True, "wall_seconds": 4.0, "cpu_seconds": 7.0},
            "ended for using 7 s of processor time",
        ),
        (
            {"timed_out": True, "wall_seconds": 5.0, "num_oom_kills": 2},
            "timed out after 5 s; "
            "2 processes were ended for using more than 64 MiB of memory together",
        ),
        ({"oom": True, "num_oom_kills": 1}, "ended for using more than 64 MiB of memory"),
        ({"output_limit": True, "stdout_truncated": True}, "ended for printing more than 1 MiB"),
        (
            {"output_limit": True},
            "what it left is more than a workspace may hold (64 MiB), "
            "so its changes to files are lost",
        ),
    ],
)
def test_ending_is_told_in_one_line(fields: dict[str, Any], line: str) -> None:
    result = CommandResult.model_validate({"stdout": b"said", "stderr": REPORT, **fields})
    assert run(result).observation == f"said\n[{line}]"


def test_strays_services_and_notes_are_told_in_the_same_line() -> None:
    report = b":start 2\0:service web 3\0:lost\0:strays 4 (sleep) S 1 2\n5 (sleep) S 1 2\n\0"
    result = run(CommandResult(exit_code=0, stdout=b"said\n", stderr=report))
    assert result.observation == (
        "said\n[exit code 0; 2 background processes ended with the command: sleep; "
        "service web ended with exit code 3, see /tmp/web.log while a command runs; "
        "the working directory /workspace is gone, back in /workspace]"
    )
    assert result.facts.strays == ("sleep", "sleep")
    assert len(result.facts.failed_services) == 1


def test_what_is_not_kept_is_named_up_to_a_few() -> None:
    skipped = tuple(Skipped(f"p{number}\udcff", "a pipe") for number in range(7))
    jail = FakeJail(lambda *_: JailRun(CommandResult(exit_code=0, stderr=REPORT), FILES, skipped))
    result = ShellTool(jail=jail).call(FILES, BashCall(command="x"))
    assert "p0\ufffd (a pipe), p1\ufffd (a pipe)" in result.observation
    assert result.observation.endswith(" and 2 more]")
    assert result.facts.skipped == skipped


def test_observation_stays_within_its_budget_and_facts_have_all_of_the_output() -> None:
    output = b"\x1b[1m" + "€".encode() * 5000 + b"\nTHE-END"
    result = run(
        CommandResult(exit_code=0, stdout=output, stderr=REPORT), max_observation_bytes=300
    )
    assert len(result.observation.encode()) <= 300
    assert result.observation.endswith("€\nTHE-END\n[exit code 0]")
    assert result.facts.num_left_out_bytes > 14_000
    assert result.facts.result is not None
    assert result.facts.result.stdout == output


def test_longest_ending_leaves_room_for_output() -> None:
    names = b"".join(b"%d (%b) S 1 2\n" % (pid, b"%d" % pid * 500) for pid in range(100, 105))
    result = run(
        CommandResult(exit_code=0, stdout=b"said", stderr=b":start 2\0:strays %b\0" % names),
        max_observation_bytes=256,
    )
    assert len(result.observation.encode()) <= 256
    assert result.observation.startswith("said\n[exit code 0")


def test_budget_too_small_for_any_word_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 256, got 10"):
        ShellTool(jail=FakeJail.of([]), max_observation_bytes=10)


def test_request_has_what_the_tool_was_given_and_keeps_all_output() -> None:
    jail = FakeJail.of([CommandResult(exit_code=0, stderr=REPORT)])
    web = Service(name="web", command="serve", port=8123)
    tool = ShellTool(
        jail=jail, limits=LIMITS, env={"A": "1"}, root="r", packages=("p",), services=(web,)
    )
    tool.call(FILES, BashCall(command="ls \ud800"))
    (request,) = jail.requests
    assert request.argv[4] == "ls \ufffd"
    assert request.argv[-5:] == ("web", "serve", "1FBB", "", "500")
    assert request.env["A"] == "1"
    assert (request.root, request.packages, request.has_loopback) == ("r", ("p",), True)
    assert request.limits.output_bytes == request.limits.drain_bytes


def test_trouble_of_the_host_is_never_an_observation() -> None:
    tool = ShellTool(jail=FakeJail.of([SandboxUnavailable("no slot")]))
    with pytest.raises(SandboxUnavailable):
        tool.call(FILES, BashCall(command="ls"))


def test_root_without_a_shell_is_the_tasks_fault() -> None:
    said = b"cannot execute '/bin/sh': No such file or directory\n"
    with pytest.raises(TaskError, match="cannot run /bin/sh: cannot execute"):
        run(CommandResult(exit_code=127, stderr=said))


def test_command_that_ended_before_it_began_is_still_an_observation() -> None:
    assert run(CommandResult(timed_out=True)).observation == "[timed out after 5 s]"


@pytest.mark.parametrize(
    ("command", "said"),
    [("printf 'x\0y'", "NUL"), ("x" * (MAX_COMMAND_BYTES + 1), "write long files with write_file")],
)
def test_command_that_no_shell_can_take_is_refused(command: str, said: str) -> None:
    result = call("bash", command=command)
    assert result.observation.startswith("[error: ")
    assert said in result.observation
    assert result.facts.is_refused
    assert result.workspace is FILES


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("ls", {}, "there is no tool ls; there are bash, read_file, edit_file, write_file"),
        ("\ud800\x1b", {}, "there is no tool"),
        ("bash", {}, "bash takes command; command is missing"),
        ("bash", {"command": 3}, "command must be a string"),
        ("bash", {"command": "ls", "timeout\ud800": 3}, "there is no timeout"),
        (
            "read_file",
            {"path": "a.py", "first_line": 0},
            "first_line must be a whole number from 1",
        ),
        ("read_file", {"path": "a.py", "last_line": 10**5000}, "last_line must be a whole number"),
        ("read_file", {"path": None}, "path must be a string"),
        ("read_file", {"path": "none\ud800"}, "no file none\ufffd in"),
        ("edit_file", {"path": "a.py", "old": "y", "new": ""}, "does not occur in a.py"),
    ],
)
def test_wrong_call_is_answered_in_words(name: str, arguments: dict[str, Any], said: str) -> None:
    result = call(name, **arguments)
    assert said in result.observation
    assert "\n" not in result.observation
    assert result.observation.encode()
    assert result.facts.is_refused


def test_files_are_read_and_edited_without_a_jail() -> None:
    written = call("write_file", path="src/b.py", content="y = 1\n")
    assert written.observation == "[src/b.py is written]"
    tool = ShellTool(jail=FakeJail.of([]))
    edits = ToolCall(name="edit_file", arguments={"path": "b.py", "old": "1", "new": "2"})
    edited = tool.call(written.workspace, edits, ShellSession(cwd="/workspace/src"))
    assert edited.observation == "[src/b.py is edited]"
    read = tool.call(edited.workspace, ReadFileCall(path="src/b.py"))
    assert read.observation == "     1\ty = 2"
    emptied = tool.call(read.workspace, WriteFileCall(path="a.py", content=""))
    assert tool.call(emptied.workspace, ReadFileCall(path="a.py")).observation == "[a.py is empty]"


def test_long_file_is_read_within_the_budget() -> None:
    tool = ShellTool(jail=FakeJail.of([]), max_observation_bytes=300)
    long = Workspace.of({"long": b"\0line\n" * 1000})
    read = tool.call(long, ReadFileCall(path="long"))
    assert len(read.observation) <= 300
    assert read.observation.endswith("  1000\t\\x00line")
    assert read.facts.num_left_out_bytes > 0


def test_session_is_json_that_gives_the_same_session_again() -> None:
    session = ShellSession(cwd="/workspace/a b", variables={"A": "'\n"}, unset=("TZ",))
    state = json.loads(json.dumps(session.model_dump(mode="json")))
    assert ShellSession.model_validate(state) == session


def test_calls_are_described_for_chat_templates() -> None:
    described = {entry["function"]["name"]: entry["function"] for entry in describe_calls()}
    assert list(described) == ["bash", "read_file", "edit_file", "write_file"]
    assert described["read_file"]["parameters"]["required"] == ["path"]
    assert described["bash"]["parameters"]["properties"]["command"]["type"] == "string"
    assert all(entry["description"] for entry in described.values())


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a b", "port": 1},
        {"name": "a"},
        {"name": "a", "port": 0},
        {"name": "../a", "port": 1},
    ],
)
def test_service_that_cannot_be_named_or_waited_for_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"name|port|check"):
        Service.model_validate({"command": "serve", **fields})
