"""A jail that remembers the commands of a turn or a grading.

Only commands that the jail ran are recorded; trouble of the host ends the turn
or grading without a record.
"""

from loopwright.contracts.commands import MAX_STDIN_BYTES, STDIN_FILE, CommandRecord
from loopwright.contracts.workspaces import CommandRequest, Workspace
from loopwright.core.outcomes import outcome_of
from loopwright.core.protocols import Jail, JailRun


class RecordingJail(Jail):
    """Another jail, and the records of what it ran. Safe from many threads."""

    def __init__(self, jail: Jail, *, max_stdin_bytes: int = MAX_STDIN_BYTES) -> None:
        """Let ``jail`` do the work; a longer standard input is kept apart from its record."""
        self._jail = jail
        self._max_stdin_bytes = max_stdin_bytes
        self._commands: list[CommandRecord] = []
        self._workspaces: dict[str, Workspace] = {}

    @property
    def commands(self) -> tuple[CommandRecord, ...]:
        """What ran so far, in the order of the ends."""
        return tuple(self._commands)

    @property
    def workspaces(self) -> tuple[Workspace, ...]:
        """The workspaces that the records name and that must be kept to run them again."""
        return tuple(self._workspaces.values())

    def run(self, workspace: Workspace, request: CommandRequest) -> JailRun:
        """Run one command, and record it."""
        done = self._jail.run(workspace, request)
        record = CommandRecord(
            request=request,
            workspace=self._remember(workspace),
            outcome=outcome_of(done, request),
        )
        self._commands.append(self._with_stdin_apart(record))
        return done

    def _with_stdin_apart(self, record: CommandRecord) -> CommandRecord:
        """Keep a long standard input as a workspace."""
        data = record.request.stdin
        if len(data) <= self._max_stdin_bytes:
            return record
        request = record.request.model_copy(update={"stdin": b""})
        stdin = self._remember(Workspace.of({STDIN_FILE: data}))
        return record.model_copy(update={"request": request, "stdin": stdin})

    def _remember(self, workspace: Workspace) -> str:
        self._workspaces[workspace.digest] = workspace
        return workspace.digest
