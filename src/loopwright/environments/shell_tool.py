"""The shell tool: bash commands, file reads and edits, each a function of a workspace.

Nothing lives between calls but the workspace and the session, which are values: any worker can
carry out the next call. What a policy did wrong is an observation in words; an exception says that
the platform or the task is at fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from loopwright.contracts.failures import TaskError
from loopwright.contracts.turns import ToolCall
from loopwright.contracts.workspaces import (
    CommandRequest,
    CommandResult,
    Limits,
    Skipped,
    Strict,
    Workspace,
)
from loopwright.core.protocols import Jail
from loopwright.environments.clean_text import CutText, clean, cut, scrub
from loopwright.environments.shell_calls import (
    BashCall,
    Call,
    EditFileCall,
    ReadFileCall,
    read_call,
)
from loopwright.environments.shell_ending import describe_ending
from loopwright.environments.shell_report import read_report
from loopwright.environments.shell_script import MAX_COMMAND_BYTES, Service, command_line
from loopwright.environments.shell_session import ShellSession
from loopwright.environments.workspace_files import (
    CallRefused,
    ReadContent,
    inline_content,
    read_text,
    replace_text,
    resolve,
    write_text,
)

_ENVIRONMENT = {"PYTHONUNBUFFERED": "1"}
"""So that what a program printed before it was ended is there to read."""

_MIN_OBSERVATION_BYTES = 256


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What a call came to, for the environment; the policy reads words instead."""

    is_refused: bool = False
    """Whether the call was not carried out: wrong arguments, no such file or text."""
    result: CommandResult | None = None
    """How the command ended, and all it printed on ``stdout``; None when no command ran."""
    strays: tuple[str, ...] = ()
    """Names of the processes that were left running, and so ended with the call."""
    failed_services: tuple[str, ...] = ()
    """What is wrong with services that did not get ready, in words."""
    skipped: tuple[Skipped, ...] = ()
    """What the command left that a workspace does not hold."""
    num_left_out_bytes: int = 0
    """Bytes of clean text that the observation lacks."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call leaves, and what the policy reads."""

    workspace: Workspace
    session: ShellSession
    observation: str
    """Clean text of at most ``max_observation_bytes``."""
    facts: ToolFacts = ToolFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellTool:
    """A shell and an editor over a workspace.

    Example:
        ``ShellTool(jail=jail).call(workspace, ToolCall(name="bash", arguments={"command": "ls"}))``
    """

    jail: Jail
    limits: Limits = field(default_factory=Limits)
    """Limits of each command; starting its services counts. ``output_bytes`` is not looked at."""
    max_observation_bytes: int = 16 * 1024
    """Length of an observation in UTF-8, and so more than its tokens in a byte-level vocabulary."""
    services: tuple[Service, ...] = ()
    """Programs started in each command's jail before it, in this order."""
    has_loopback: bool = False
    """Whether commands have a loopback interface; with services they always do."""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables that every command is given."""
    root: str = ""
    packages: tuple[str, ...] = ()
    strict: Strict | None = None
    content: ReadContent = inline_content
    """How the content of a workspace's file is had: ``Blobs.read`` where files may not carry it."""

    def __post_init__(self) -> None:
        if self.max_observation_bytes < _MIN_OBSERVATION_BYTES:
            raise ValueError(
                f"max_observation_bytes must be at least {_MIN_OBSERVATION_BYTES}, "
                f"got {self.max_observation_bytes}"
            )

    def call(
        self, workspace: Workspace, call: ToolCall | Call, session: ShellSession | None = None
    ) -> ToolResult:
        """Carry out one call of a policy, as ``describe_calls`` describes them.

        Raises:
            SandboxUnavailable: the host could not run it.
            StoreError: a file's content could not be had.
            TaskError: the root file system has no shell, or the workspace given does not fit.
        """
        now = session or ShellSession()
        try:
            asked = read_call(call) if isinstance(call, ToolCall) else call
            return self._carry_out(workspace, asked, now)
        except CallRefused as refusal:
            return self._say(f"[error: {refusal}]", workspace, now, ToolFacts(is_refused=True))

    def _carry_out(self, workspace: Workspace, call: Call, session: ShellSession) -> ToolResult:
        if isinstance(call, BashCall):
            return self._run(workspace, scrub(call.command), session)
        path = resolve(workspace, call.path, session.cwd)
        if isinstance(call, ReadFileCall):
            text = read_text(
                workspace, path, content=self.content, first=call.first_line, last=call.last_line
            )
            return self._say(text or f"[{path} is empty]", workspace, session)
        if isinstance(call, EditFileCall):
            edited = replace_text(
                workspace, path, call.old, call.new, content=self.content, limits=self.limits
            )
            return self._say(f"[{path} is edited]", edited, session)
        written = write_text(workspace, path, call.content, limits=self.limits)
        return self._say(f"[{path} is written]", written, session)

    def _say(
        self, text: str, workspace: Workspace, session: ShellSession, facts: ToolFacts | None = None
    ) -> ToolResult:
        shown = cut(clean(scrub(text).encode()), self.max_observation_bytes)
        known = replace(facts or ToolFacts(), num_left_out_bytes=shown.num_left_out_bytes)
        return ToolResult(workspace, session, shown.text, known)

    def _run(self, workspace: Workspace, command: str, session: ShellSession) -> ToolResult:
        if "\0" in command:
            raise CallRefused("the command holds a NUL character, which no shell can take")
        if len(command.encode()) > MAX_COMMAND_BYTES:
            raise CallRefused(
                f"the command is longer than {MAX_COMMAND_BYTES} bytes; "
                "write long files with write_file"
            )
        run = self.jail.run(workspace, self._request(command, session))
        report = read_report(run.result.stderr, session)
        if run.result.exit_code is not None and not report.is_started:
            said = clean(run.result.stderr[:500]).strip()
            raise TaskError(f"the root file system cannot run /bin/sh: {said}")
        shown = self._observation(run.result, describe_ending(run.result, report, run.skipped))
        facts = ToolFacts(
            result=run.result,
            strays=report.strays,
            failed_services=report.failed_services,
            skipped=run.skipped,
            num_left_out_bytes=shown.num_left_out_bytes,
        )
        return ToolResult(run.workspace, report.session, shown.text, facts)

    def _request(self, command: str, session: ShellSession) -> CommandRequest:
        # Whatever may come out is kept here, for its end is worth as much as its beginning.
        kept = {"output_bytes": self.limits.drain_bytes}
        return CommandRequest(
            argv=command_line(command, session=session, services=self.services),
            env={**_ENVIRONMENT, **self.env},
            limits=self.limits.model_copy(update=kept),
            root=self.root,
            packages=self.packages,
            has_loopback=self.has_loopback or bool(self.services),
            strict=self.strict,
        )

    def _observation(self, result: CommandResult, ending: str) -> CutText:
        """Put the line on the ending below the output, both within the budget."""
        line = cut(ending, self.max_observation_bytes // 2).text
        output = clean(result.stdout)
        num_lost = max(0, result.num_stdout_bytes - len(result.stdout))
        room = self.max_observation_bytes - len(line.encode()) - 1
        shown = cut(output, room, num_lost_bytes=num_lost)
        gap = "" if not shown.text or shown.text.endswith("\n") else "\n"
        return CutText(shown.text + gap + line, shown.num_left_out_bytes)
