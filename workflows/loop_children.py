"""The children of a loop: how its iterations and evaluations are started."""

from temporalio import workflow
from temporalio.common import TypedSearchAttributes

from loopwright.contracts import ids
from loopwright.contracts.evaluations import (
    EvaluateRequest,
    EvaluationInput,
    EvaluationResult,
)
from loopwright.contracts.iterations import (
    IterationInput,
    IterationResult,
    LoopInput,
    LoopState,
)
from loopwright.contracts.policies import CheckpointRef

with workflow.unsafe.imports_passed_through():
    from loopwright.workflows import search_attributes
    from loopwright.workflows.evaluation import EvaluationWorkflow
    from loopwright.workflows.iteration import IterationWorkflow


IterationHandle = workflow.ChildWorkflowHandle[IterationWorkflow, IterationResult]


async def start_iteration(loop: LoopInput, state: LoopState, *, num_open: int) -> IterationHandle:
    """Start the iteration that follows those done and ``num_open`` unfinished ones."""
    index = state.num_done + num_open + 1
    return await workflow.start_child_workflow(
        IterationWorkflow.run,
        IterationInput(
            loop_id=loop.loop_id,
            loop_uid=state.uid,
            index=index,
            config=loop.config,
            checkpoint=_checkpoint(state),
            holder=workflow.info().workflow_id,
            carried=state.parked,
            drops=state.drops,
            num_ahead=num_open,
            has_predecessor=num_open > 0,
        ),
        id=ids.iteration_path(workflow.info().workflow_id, index),
        parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        search_attributes=_search_attributes(loop, state, iteration=index),
        static_summary=f"iteration {index} of {loop.loop_id}",
    )


async def run_evaluation(
    loop: LoopInput, state: LoopState, asked: EvaluateRequest
) -> EvaluationResult:
    """Evaluate the present version."""
    evaluation, name = loop.config.evaluation, asked.name
    return await workflow.execute_child_workflow(
        EvaluationWorkflow.run,
        EvaluationInput(
            prefix=ids.evaluation_path(ids.loop_prefix(loop.loop_id, state.uid), name),
            name=name,
            loop_id=loop.loop_id,
            iteration=state.num_done,
            config=loop.config,
            checkpoint=_checkpoint(state),
            holder=workflow.info().workflow_id,
            num_tasks=asked.num_tasks or evaluation.num_tasks,
            samples=asked.samples or evaluation.samples,
        ),
        id=ids.evaluation_path(workflow.info().workflow_id, name),
        parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        search_attributes=_search_attributes(loop, state, iteration=state.num_done),
        static_summary=f"evaluation {name} of {loop.loop_id}",
    )


def _search_attributes(
    loop: LoopInput, state: LoopState, *, iteration: int
) -> TypedSearchAttributes:
    return search_attributes.at_start(
        loop_id=loop.loop_id,
        iteration=iteration,
        policy_version=_checkpoint(state).policy.version,
    )


def _checkpoint(state: LoopState) -> CheckpointRef:
    assert state.checkpoint is not None
    return state.checkpoint
