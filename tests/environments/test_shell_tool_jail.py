"""The shell tool in the real jail, with commands as policies write them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.workspaces import MIB, CommandRequest, Limits, Workspace
from loopwright.core.protocols import Jail, JailRun
from loopwright.environments.shell_calls import BashCall
from loopwright.environments.shell_script import MAX_COMMAND_BYTES, Service
from loopwright.environments.shell_session import ShellSession
from loopwright.environments.shell_tool import ShellTool, ToolFacts
from tests.adapters.jails import left_on_host, needs_jails

pytestmark = [pytest.mark.nsjail, needs_jails]

LIMITS = Limits(wall_seconds=20, memory_bytes=128 * MIB, max_processes=20)


@dataclass(slots=True)
class Shell:
    """A conversation with the tool: keeps workspace and session from call to call."""

    tool: ShellTool
    workspace: Workspace = field(default_factory=Workspace)
    session: ShellSession = field(default_factory=ShellSession)
    facts: ToolFacts = field(default_factory=ToolFacts)

    def __call__(self, command: str) -> str:
        result = self.tool.call(self.workspace, BashCall(command=command), self.session)
        self.workspace, self.session, self.facts = result.workspace, result.session, result.facts
        return result.observation


class JailWithoutBash(Jail):
    """Runs the script as if its root file system had no bash."""

    def __init__(self, jail: Jail) -> None:
        self._jail = jail

    def run(self, workspace: Workspace, request: CommandRequest) -> JailRun:
        argv = tuple(word.replace("/bin/bash", "/bin/none") for word in request.argv)
        return self._jail.run(workspace, request.model_copy(update={"argv": argv}))


Open = Callable[..., Shell]


@pytest.fixture(scope="module", params=["native", "nsjail"])
def jail(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalJail]:
    root = tmp_path_factory.mktemp("jails") / "root"
    with LocalJail(root, num_slots=1, launcher=request.param) as opened:
        yield opened


@pytest.fixture
def shell(jail: LocalJail) -> Shell:
    return Shell(ShellTool(jail=jail, limits=LIMITS))


@pytest.fixture
def served(jail: LocalJail) -> Callable[..., Shell]:
    """Open a shell with a service."""

    def open_shell(command: str, **fields: object) -> Shell:
        service = Service.model_validate({"name": "web", "command": command, **fields})
        return Shell(ShellTool(jail=jail, limits=LIMITS, services=(service,)))

    return open_shell


def test_output_and_errors_stand_in_the_order_in_which_they_came(shell: Shell) -> None:
    assert shell("echo a; echo b >&2; echo c; exit 3") == "a\nb\nc\n[exit code 3]"


def test_directory_and_exported_variables_carry_over(shell: Shell) -> None:
    shell("mkdir 'it''s'; cd 'it''s'; touch f; export A=\"1 '2\" B=b; unset TZ; unexported=1")
    assert shell('pwd; echo "$A" "${TZ-none}" "${unexported-none}"; unset B; cd ..') == (
        "/workspace/its\n1 '2 none none\n[exit code 0]"
    )
    assert shell('pwd; echo "${B-none}"; cd -') == (
        "/workspace\nnone\n/workspace/its\n[exit code 0]"
    )


def test_session_goes_on_after_a_command_that_failed_or_left(shell: Shell) -> None:
    shell("mkdir d; cd d; touch f; export A=1; false")
    assert shell("set -eux; cd ..; export A=2; false; echo never").endswith("[exit code 1]")
    assert shell("pwd; echo $A; cd d; exit 4").startswith("/workspace\n2\n")
    assert shell("pwd; exec echo bye").startswith("/workspace/d\nbye\n")
    assert shell("pwd; echo $A").startswith("/workspace/d\n2\n")


def test_directory_that_is_gone_is_left_with_a_word(shell: Shell) -> None:
    shell("cd /tmp; mkdir x; cd x")
    observation = shell("pwd")
    assert observation.startswith("/workspace\n")
    assert "the working directory /tmp/x is gone" in observation
    assert shell("pwd") == "/workspace\n[exit code 0]"


def test_script_leaves_no_trace_in_the_workspace_and_no_descriptor(shell: Shell) -> None:
    digest = shell.workspace.digest
    observation = shell("ls -A /workspace /tmp; echo $# $0; cd /proc/self/fd; echo *")
    assert observation == "/tmp:\n\n/workspace:\n0 bash\n0 1 2 3\n[exit code 0]"
    assert shell.workspace.digest == digest


def test_output_before_a_timeout_is_kept_and_the_session_goes_on(jail: LocalJail) -> None:
    limits = LIMITS.model_copy(update={"wall_seconds": 1.5})
    shell = Shell(ShellTool(jail=jail, limits=limits))
    command = "echo begun > file; python3 -c 'print(\"running\"); import time; time.sleep(600)'"
    assert shell(f"echo done; {command}") == "done\nrunning\n[timed out after 1.5 s]"
    assert shell("cat file") == "begun\n[exit code 0]"


def test_background_server_does_not_hold_the_call(shell: Shell) -> None:
    observation = shell("python3 -m http.server 8123 >/dev/null 2>&1 & sleep 4567 & echo started")
    assert observation == (
        "started\n[exit code 0; 2 background processes ended with the command: python3, sleep]"
    )
    assert shell.facts.strays == ("python3", "sleep")
    assert left_on_host("sleep", "4567") == []
    assert shell("echo alive") == "alive\n[exit code 0]"


def test_daemon_that_keeps_the_output_open_is_ended_and_counted(shell: Shell) -> None:
    assert shell("(setsid sleep 4568 & ); echo on").startswith("on\n[exit code 0; 1 background")
    assert left_on_host("sleep", "4568") == []


def test_process_substitution_gets_to_its_end(shell: Shell) -> None:
    assert shell("echo late > >(sleep 0.01; cat)") == "late\n[exit code 0]"


@pytest.mark.parametrize(
    "command", ["cat", "read line", "python3", "sh", "tty", "cat /dev/tty", "sort | cat -"]
)
def test_command_that_waits_for_input_ends_at_once(shell: Shell, command: str) -> None:
    shell(command)
    assert shell.facts.result is not None
    assert not shell.facts.result.timed_out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo 'abc", "unexpected EOF while looking for matching `''"),
        ('echo "$(ls', "unexpected EOF while looking for matching"),
        ("if true; then\necho (\nfi", "line 2: syntax error near unexpected token"),
    ],
)
def test_unfinished_command_is_answered_by_bash_itself(
    shell: Shell, command: str, said: str
) -> None:
    observation = shell(command)
    assert said in observation
    assert observation.endswith("[exit code 2]")
    assert shell("echo alive") == "alive\n[exit code 0]"


def test_heredoc_without_its_end_takes_the_rest_and_says_so(shell: Shell) -> None:
    observation = shell("cat > a.py <<'EOF'\nprint(\"hi\")\n  EOF\necho never")
    assert "here-document at line 1 delimited by end-of-file (wanted `EOF')" in observation
    assert shell("echo alive && ls") == "alive\na.py\n[exit code 0]"


def test_complex_command_is_taken_as_it_is(shell: Shell) -> None:
    command = (
        'f() { local -a words=("$@"); printf \'<%s>\' "${words[@]}"; }\n'
        "for i in {1..3}; do case $i in (2) continue ;; esac; f \"$i\" $'a\\nb' '\"'; done\n"
        "cat <<-EOF && [[ x =~ ^x$ ]] && diff <(echo 1) <(echo 1) && echo $((1 << 4)) # done\n"
        "\tin $(echo \"quo\"'ted') `echo old`\n\tEOF\n"
        "! { false; } && (exit 3); echo $?"
    )
    assert shell(command) == ('<1><a\nb><"><3><a\nb><">in quoted old\n16\n3\n[exit code 0]')


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("kill -9 $$", "exit code 137: ended by signal 9 (SIGKILL)"),
        ("kill 0", "exit code 143: ended by signal 15 (SIGTERM)"),
        ("kill -9 -1", "ended by signal 9 (SIGKILL)"),
        ("nonesuch", "exit code 127"),
        ("-x", "exit code 127"),
        ("yes", "ended for printing more than 16 MiB"),
        (
            "python3 -c 'bytearray(1 << 30)'",
            "exit code 137: ended by signal 9 (SIGKILL); "
            "1 process was ended for using more than 128 MiB of memory together",
        ),
    ],
)
def test_how_a_command_ended_is_told(shell: Shell, command: str, ending: str) -> None:
    assert f"[{ending}" in shell(command).splitlines()[-1]
    assert shell("echo alive") == "alive\n[exit code 0]"


def test_command_that_leaves_no_process_free_is_still_told_by_its_own_end(shell: Shell) -> None:
    bomb = (
        "import os, time\nis_told = False\n"
        "while True:\n"
        "  try:\n    if os.fork() == 0: time.sleep(4569)\n"
        "  except OSError:\n"
        "    if not is_told: open('/tmp/full', 'w').close()\n"
        "    is_told = True\n"
    )
    full = f'mkfifo /tmp/full; python3 -c "{bomb}" & read line </tmp/full'
    assert shell(f"trap - EXIT; {full}; exit 5").startswith("[exit code 5; ")
    assert len(shell.facts.strays) >= 15


def test_what_a_workspace_does_not_hold_is_told(shell: Shell) -> None:
    observation = shell("mkfifo pipe; ln -s /usr/bin out; touch file; ln -s file link")
    assert observation.startswith("[exit code 0; not kept in the workspace: ")
    assert [one.path for one in shell.facts.skipped] == ["out", "pipe"]
    assert shell("ls") == "file\nlink\n[exit code 0]"


def test_longest_command_and_session_can_be_run(shell: Shell) -> None:
    fill = 'for i in {0..19}; do export V$i="$(printf "\'%.0s" {1..1600})"; done; '
    folders = "/".join(["'" * 200] * 4)
    observation = shell(f'{fill} mkdir -p "{folders}"; cd "{folders}"; touch f')
    assert "not carried over" in observation
    assert sorted(shell.session.variables) == ["OLDPWD", "V0", "V1", "V10", "V11"]
    command = 'echo ${#V0} "$(basename "$PWD")" #'
    longest = command + "x" * (MAX_COMMAND_BYTES - len(command))
    assert shell(longest) == f"1600 {chr(39) * 200}\n[exit code 0]"


def test_long_output_keeps_its_end(shell: Shell) -> None:
    observation = shell("python3 -c \"print('A' * 70000)\"; echo THE-END")
    assert observation.endswith("AAA\nTHE-END\n[exit code 0]")
    assert f"[... {shell.facts.num_left_out_bytes} bytes left out ...]" in observation


def test_forged_report_moves_no_more_than_the_own_session(shell: Shell) -> None:
    forged = r"printf ':strays \0:cwd /nowhere\0:before\0:after\0X=1\0:end\0' >/proc/$PPID/fd/3"
    assert shell(f"{forged}; kill -9 $$").splitlines()[-1].startswith("[exit code 137")
    assert shell.session == ShellSession(cwd="/nowhere", variables={"X": "1"})
    assert "the working directory /nowhere is gone" in shell("true")


def test_shell_without_bash_keeps_its_session(jail: LocalJail) -> None:
    shell = Shell(ShellTool(jail=JailWithoutBash(jail), limits=LIMITS))
    shell("mkdir d; cd d; touch f; export A='1 2'; unset TZ")
    assert shell('pwd; echo "$A ${TZ-none} ${BASH_VERSION-none}"; exit 3') == (
        "/workspace/d\n1 2 none none\n[exit code 3]"
    )
    assert "Unterminated quoted string" in shell("echo 'abc")


def test_service_is_there_in_every_call_and_no_stray(served: Open) -> None:
    shell = served("python3 -m http.server 8123", port=8123)
    shell("echo hello > index.html")
    fetch = (
        "python3 -c 'from urllib.request import urlopen\n"
        'print(urlopen("http://localhost:8123").read())\''
    )
    assert shell(f"cd /tmp; {fetch}") == "b'hello\\n'\n[exit code 0]"
    assert shell("grep -c GET /tmp/web.log") == "0\n[exit code 1]"


def test_service_does_not_see_what_the_session_changed(served: Open) -> None:
    shell = served("echo $PWD $PATH > /tmp/seen; exec sleep 60", check="test -s /tmp/seen")
    shell("cd /tmp; export PATH=/workspace")
    assert shell("read -r seen < seen; echo $seen; echo $PATH").startswith(
        "/workspace /usr/bin:/bin\n/workspace\n"
    )


def test_service_that_goes_to_the_background_itself_is_waited_for(served: Open) -> None:
    shell = served("(sleep 0.1; touch /tmp/up; exec sleep 60) &", check="test -e /tmp/up")
    assert shell("ls /tmp") == "up\nweb.log\n[exit code 0]"


def test_service_that_fails_is_told_and_the_command_still_runs(served: Open) -> None:
    shell = served("echo broken >&2; exit 4", port=8123)
    assert shell("cat /tmp/web.log") == (
        "broken\n[exit code 0; service web ended with exit code 4, "
        "see /tmp/web.log while a command runs]"
    )


def test_service_that_is_never_ready_is_told(served: Open) -> None:
    shell = served("sleep 60", port=8123, ready_seconds=0.1)
    assert "service web was not ready in time" in shell("true")


def test_same_command_on_the_same_workspace_gives_the_same(shell: Shell, jail: LocalJail) -> None:
    other = Shell(ShellTool(jail=jail, limits=LIMITS))
    command = "mkdir d; cd d; echo 1 > f; export A=1; ls -la; env | sort; echo $$ $PPID; sleep 60 &"
    assert shell(command) == other(command)
    assert (shell.workspace.digest, shell.session) == (other.workspace.digest, other.session)
