"""Poses steps in words, runs the answer on visible cases, grades it on hidden ones."""

import re
from collections.abc import Sequence

from loopwright.contracts.configs import EnvironmentConfig
from loopwright.contracts.episodes import Component, Grade, Verdict
from loopwright.contracts.tasks import Split, Task, TaskRef
from loopwright.contracts.turns import JsonObject, Message, StopReason
from loopwright.contracts.workspaces import Limits, Workspace
from loopwright.core.protocols import Jail
from loopwright.environments.base import Environment, Pose, Reply
from loopwright.environments.function_grader import CaseOutcome, run_cases, verdict_of
from loopwright.environments.program_steps.feedback import NO_FUNCTION, describe_failure
from loopwright.environments.program_steps.tasks import ENVIRONMENT_ID, Taskset, read_options
from loopwright.environments.rubrics import grade

ANSWER_FILE = "answer.py"
_FENCE = re.compile(r"```(?:python)?[ \t]*\n(.*?)```", re.DOTALL)
_CODE = re.compile(r"^(?:import |from \w|@|def |async def |class )", re.MULTILINE)
_FUNCTION = re.compile(r"^[ \t]*(?:async )?def ", re.MULTILINE)


class ProgramSteps(Environment):
    """Two turns at most: an answer, and after a failed visible case one more.

    State: ``{"answer": str | None, "num_answers": int}``.
    """

    id = ENVIRONMENT_ID

    def __init__(self, config: EnvironmentConfig) -> None:
        """Check the options; the tasks are made when they are first asked for."""
        self._tasks = Taskset(read_options(config.options))

    def list_tasks(self, split: Split) -> Sequence[TaskRef]:
        """List the tasks of one split."""
        return self._tasks.refs(split)

    def load_task(self, task_id: str) -> Task:
        """Give a task whole."""
        return self._tasks.task(task_id)

    def pose(self, task: Task) -> Pose:
        """Say the steps."""
        return Pose(
            state={"answer": None, "num_answers": 0},
            messages=(Message(role="user", content=task.prompt),),
        )

    def reply(
        self, task: Task, state: JsonObject, completion: str, *, jail: Jail, limits: Limits
    ) -> Reply:
        """Run the answer on the visible cases, and say which one it fails."""
        answer = extract_answer(completion)
        after: JsonObject = {"answer": answer, "num_answers": state["num_answers"] + 1}
        workspace = Workspace.of({ANSWER_FILE: answer.encode("utf-8", "replace")} if answer else {})
        complaint = self._complaint(task, answer, jail, limits)
        if complaint is None:
            return Reply(state=after, stop_reason=StopReason.COMPLETED, workspace=workspace)
        message = Message(role="user", content=complaint)
        return Reply(state=after, messages=(message,), workspace=workspace)

    def grade(self, task: Task, state: JsonObject, *, jail: Jail, limits: Limits) -> Grade:
        """Reward 0.5 x share of hidden cases passed + 0.5 if all - 0.05 for an extra turn."""
        extra = max(0, int(state["num_answers"]) - 1)
        answer = state["answer"]
        if answer is None:
            return grade(Verdict.FAIL, _components(0.0, is_full=False, extra_turns=extra))
        run = run_cases(answer, task.entry, task.hidden_tests, jail=jail, limits=limits)
        passed = sum(outcome.is_passed for outcome in run.outcomes)
        share = passed / len(task.hidden_tests)
        verdict = verdict_of(run, len(task.hidden_tests))
        is_full = verdict is Verdict.PASS
        return grade(verdict, _components(share, is_full=is_full, extra_turns=extra))

    def _complaint(self, task: Task, answer: str | None, jail: Jail, limits: Limits) -> str | None:
        """Say what is wrong with an answer; None when every visible case passes."""
        if answer is None:
            return NO_FUNCTION
        run = run_cases(answer, task.entry, task.visible_tests, jail=jail, limits=limits)
        for case, outcome in zip(task.visible_tests, run.outcomes, strict=True):
            if not outcome.is_passed:
                return describe_failure(case, _shown(outcome))
        return None


def extract_answer(completion: str) -> str | None:
    """Take the program from a completion, bare or in a fence; None when it holds no function."""
    fenced = [text for text in _FENCE.findall(completion) if _FUNCTION.search(text)]
    if fenced:
        return str(fenced[0])
    start = _CODE.search(completion)
    text = completion[start.start() :] if start else ""
    return text if _FUNCTION.search(text) else None


def _shown(outcome: CaseOutcome) -> str:
    return outcome.shown or "nothing"


def _components(share: float, *, is_full: bool, extra_turns: int) -> dict[str, Component]:
    return {
        "cases": Component(score=share, weight=0.5),
        "all_cases": Component(score=float(is_full), weight=0.5),
        "extra_turns": Component(score=float(extra_turns), weight=-0.05),
    }
