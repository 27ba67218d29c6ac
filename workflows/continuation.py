"""When a long-lived workflow begins another run, and on which build of the workers."""

from typing import NoReturn

from temporalio import workflow


class Continuation:
    """Whether this run of a workflow is to be continued as new; make it as the run begins.

    Every workflow ends on the build on which it began (pinned). One that lives long goes over to
    the current build here, at a point where it has no child open.
    """

    def __init__(self) -> None:
        self._stays = _is_other_build_current()
        """Whether going over was in vain: an operator holds the workflow on its build."""

    def is_due(self) -> bool:
        """Tell whether the history is full, or another build has become current."""
        is_full = workflow.info().is_continue_as_new_suggested()
        return is_full or (_is_other_build_current() and not self._stays)


def continue_as_new(argument: object) -> NoReturn:
    """Begin another run, on the build that is current then."""
    workflow.continue_as_new(
        argument,
        initial_versioning_behavior=workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
    )


def _is_other_build_current() -> bool:
    return workflow.info().is_target_worker_deployment_version_changed()
