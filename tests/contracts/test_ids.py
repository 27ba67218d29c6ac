import pytest

from loopwright.contracts import ids

LOOP = "loop/digits"
DIGEST = "0123456789abcdef" * 4
GROUPS = [
    ids.group_path(ids.iteration_path(LOOP, 3), "program_steps", "d2-1/a b"),
    ids.group_path(ids.evaluation_path(LOOP, "base policy"), "e", "t"),
]


@pytest.mark.parametrize("group", GROUPS)
def test_workflow_id_of_an_episode_is_read_back_with_the_uid_open(group: str) -> None:
    name = ids.parse_episode(ids.episode_path(group, 7))
    assert name is not None
    assert (name.loop, name.uid) == (LOOP, None)
    assert f"{name.loop}/{name.path}" == ids.episode_path(group, 7)


@pytest.mark.parametrize("group", GROUPS)
def test_prefix_of_an_episode_is_read_back_whole(group: str) -> None:
    loop = ids.loop_prefix("digits", "0123456789ab")
    prefix = ids.episode_path(group.replace(LOOP, loop), 7)
    name = ids.parse_episode(prefix)
    assert name is not None
    assert (name.loop, name.uid) == (LOOP, "0123456789ab")
    assert name.prefix("0123456789ab") == prefix


@pytest.mark.parametrize(
    "text",
    ["", "digits", LOOP, GROUPS[0], f"{GROUPS[0]}/episode/x", f"/{GROUPS[0]}/episode/1",
     f"{GROUPS[0]}/episode/1/turn/0", "loop//iteration/000001/task/t/episode/0"],
)  # fmt: skip
def test_what_names_no_episode_is_not_read(text: str) -> None:
    assert ids.parse_episode(text) is None


def test_key_of_an_artifact_is_known_by_the_digest_it_ends_in() -> None:
    key = ids.artifact_key("loop/a-1/x", "report", DIGEST, ".tar.gz")
    assert ids.is_key_of(key, DIGEST)
    assert not ids.is_key_of(key, "f" * 64)
