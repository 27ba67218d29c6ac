"""Requests to one episode of a running loop; its group takes them."""

from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from loopwright.contracts import ids
from loopwright.contracts.failures import UserError
from loopwright.contracts.groups import EpisodeRequest, GroupResult
from loopwright.sdk.arguments import check_text
from loopwright.sdk.server_errors import message_of, of_rpc
from loopwright.sdk.updates import execute_update


async def steer_episode(client: Client, loop_id: str, episode: str, update: str) -> None:
    """Send an update to the group of an episode.

    Args:
        client: of the loop's namespace.
        loop_id: the loop that the episode must be of.
        episode: its workflow id, as the Web UI shows it.
        update: name of the group's update.

    Raises:
        UserError: it is no episode of this loop, or is not under way.
        LoopUnanswered: no worker of the control pool takes the request.
    """
    workflow_id = _workflow_id(loop_id, episode)
    path, _, index = workflow_id.rpartition("/episode/")
    group: WorkflowHandle[object, GroupResult] = client.get_workflow_handle(path)
    try:
        await execute_update(client, group, update, EpisodeRequest(index=int(index)))
    except WorkflowUpdateFailedError as error:
        raise UserError(f"episode {workflow_id}: {message_of(error.cause)}") from error
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise of_rpc(f"episode {workflow_id}", loop_id, error) from error
        fate = "it has ended" if "completed" in error.message else "there is no such episode"
        raise UserError(f"episode {workflow_id}: {fate}") from error


def loop_of(episode: str) -> str:
    """Give the id of the loop that an episode is of.

    Raises:
        UserError: this names no episode.
    """
    return _parse(episode).loop.removeprefix(ids.loop_workflow_id(""))


def _workflow_id(loop_id: str, episode: str) -> str:
    name = _parse(episode)
    if name.loop != ids.loop_workflow_id(loop_id):
        raise UserError(f"episode {episode} is one of {name.loop}, not of loop {loop_id}")
    return f"{name.loop}/{name.path}"


def _parse(episode: str) -> ids.EpisodeName:
    check_text("episode", episode)
    name = ids.parse_episode(episode)
    if name is None:
        raise UserError(
            f"episode: expected its workflow id, as loop/NAME/iteration/000001/task/T/episode/0; "
            f"got {episode[:200]!r}"
        )
    return name
