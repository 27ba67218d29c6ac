"""Workflow ids and artifact keys; they mirror each other, and no other module builds one."""

import hashlib
import re
from dataclasses import dataclass

_MAX_SLUG = 80
_KEY_DIGITS = 32
_PLAIN = re.compile(r"[A-Za-z0-9._-]")
_EPISODE = re.compile(
    r"(?P<loop>loop/[^/]+)(?:/(?P<uid>[0-9a-f]{12}))?"
    r"/(?P<path>(?:iteration/\d{6,}|evaluation/[^/]+)/task/[^/]+/episode/\d+)"
)

LOOP = "Loop"
ITERATION = "Iteration"
GROUP = "Group"
EPISODE = "Episode"
EVALUATION = "Evaluation"
SCHEDULED_WORK = "ScheduledWork"


def slug(text: str) -> str:
    """Escape ``text`` into one path segment; distinct texts give distinct segments.

    Bytes other than letters, digits, ``.``, ``_`` and ``-`` become ``~hh``; a long text keeps its
    start and gains a digest. ``.`` and ``..`` are escaped whole.
    """
    escaped = "".join(
        chr(byte) if _PLAIN.match(chr(byte)) and text not in (".", "..") else f"~{byte:02x}"
        for byte in text.encode("utf-8", "surrogatepass")
    )
    if len(escaped) <= _MAX_SLUG:
        return escaped
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{escaped[:48]}~~{digest}"


def loop_workflow_id(loop_id: str) -> str:
    """Name the workflow of a loop: ``loop/digits``."""
    return f"loop/{loop_id}"


def loop_prefix(loop_id: str, uid: str) -> str:
    """Name the key prefix of a loop; the uid keeps a new loop apart from an old namesake."""
    return f"{loop_workflow_id(loop_id)}/{uid}"


def iteration_path(parent: str, index: int) -> str:
    """Extend a loop's workflow id or prefix to one of its iterations."""
    return f"{parent}/iteration/{index:06d}"


def evaluation_path(parent: str, name: str) -> str:
    """Extend a loop's workflow id or prefix to one of its evaluations."""
    return f"{parent}/evaluation/{slug(name)}"


def evaluation_name(num_iterations: int) -> str:
    """Name the evaluation that follows so many iterations of a loop."""
    return f"iteration-{num_iterations:06d}"


def schedule_path(parent: str, name: str) -> str:
    """Extend a loop's workflow id to the firings of a schedule; the server adds their times."""
    return f"{parent}/schedule/{slug(name)}"


def group_path(parent: str, environment: str, task_id: str) -> str:
    """Extend an iteration's or evaluation's path to the group of one task."""
    return f"{parent}/task/{slug(environment)}.{slug(task_id)}"


def episode_path(parent: str, index: int) -> str:
    """Extend a group's path to one of its episodes."""
    return f"{parent}/episode/{index}"


@dataclass(frozen=True, slots=True)
class EpisodeName:
    """What a workflow id or key prefix says of its episode."""

    loop: str
    """Workflow id of the loop."""
    uid: str | None
    """Uid of the loop; None in a workflow id, which leaves it open."""
    path: str
    """The rest, which workflow ids and prefixes share."""

    def prefix(self, uid: str) -> str:
        """Name the episode's key prefix in the loop of this uid."""
        return f"{self.loop}/{uid}/{self.path}"


def parse_episode(text: str) -> EpisodeName | None:
    """Read an episode's workflow id or key prefix; None when it is neither."""
    match = _EPISODE.fullmatch(text)
    return EpisodeName(match["loop"], match["uid"], match["path"]) if match else None


def turns_prefix(episode_prefix: str) -> str:
    """Name the key prefix of an episode's turn records."""
    return f"{episode_prefix}/turn/"


def turn_key(episode_prefix: str, index: int, parent: str, digest: str) -> str:
    """Name the key of a turn record: index, parent digest and own digest."""
    return f"{turns_prefix(episode_prefix)}{index:04d}-{parent or 'root'}-{digest}.json"


def trajectories_prefix(episode_prefix: str) -> str:
    """Name what the keys of an episode's trajectories begin with."""
    return f"{episode_prefix}/trajectory-"


def artifact_key(prefix: str, name: str, digest: str, suffix: str) -> str:
    """Name the key of an artifact that its content's digest ends."""
    return f"{prefix}/{name}-{digest[:_KEY_DIGITS]}{suffix}"


def is_key_of(key: str, digest: str) -> bool:
    """Tell whether an artifact's key is one of content of this digest."""
    return key.rpartition("/")[2].partition(".")[0].endswith(f"-{digest[:_KEY_DIGITS]}")


def workspace_key(digest: str) -> str:
    """Name the key of a workspace by its digest."""
    return f"workspace/{digest}.zst"


def blob_key(sha256: str) -> str:
    """Name the key of the content of workspace files by its digest."""
    return f"workspace/blob/{sha256}.zst"
