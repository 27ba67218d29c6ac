"""Fake of the jail, for unit tests."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from loopwright.contracts.workspaces import CommandRequest, CommandResult, Workspace
from loopwright.core.protocols import Jail, JailRun

Script = Callable[[Workspace, CommandRequest], JailRun]


@dataclass(slots=True)
class FakeJail(Jail):
    """A jail that runs nothing: it answers by a function and remembers what it was asked."""

    script: Script
    requests: list[CommandRequest] = field(default_factory=list)

    @classmethod
    def of(cls, results: Iterable[CommandResult | Exception]) -> "FakeJail":
        """Answer with these in turn, workspaces unchanged; an exception is raised."""
        answers = iter(results)

        def answer(workspace: Workspace, request: CommandRequest) -> JailRun:
            result = next(answers)
            if isinstance(result, Exception):
                raise result
            return JailRun(result=result, workspace=workspace)

        return cls(answer)

    def run(self, workspace: Workspace, request: CommandRequest) -> JailRun:
        """Answer by the script."""
        self.requests.append(request)
        return self.script(workspace, request)
