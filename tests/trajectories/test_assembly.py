from loopwright.contracts.policies import PolicySpan, VersionSpan
from loopwright.trajectories.assembly import assemble_samples, policy_span
from tests.trajectories.records import record


def test_turns_that_extend_each_other_are_one_sample() -> None:
    first = record(0, prompt=(1, 2), completion=(3, 4))
    second = record(1, prompt=(1, 2, 3, 4, 5), completion=(6,), version=1)
    (sample,) = assemble_samples([first, second])
    assert sample.token_ids == (1, 2, 3, 4, 5, 6)
    assert sample.loss_mask == (False, False, True, True, False, True)
    assert sample.behaviour_logprobs == (0, 0, -0.1, -0.2, 0, -0.1)
    assert sample.versions == (-1, -1, 0, 0, -1, 1)
    assert sample.turns == (-1, -1, 0, 0, -1, 1)


def test_rewritten_context_opens_a_new_sample() -> None:
    first = record(0, prompt=(1, 2), completion=(3, 4))
    second = record(1, prompt=(1, 2, 3, 9), completion=(6,))
    assert [s.token_ids for s in assemble_samples([first, second])] == [
        (1, 2, 3, 4),
        (1, 2, 3, 9, 6),
    ]


def test_shorter_prompt_is_never_taken_for_an_extension() -> None:
    first = record(0, prompt=(1, 2), completion=(3, 4))
    assert len(assemble_samples([first, record(1, prompt=(1, 2, 3))])) == 2


def test_episode_without_turns_has_no_sample() -> None:
    assert assemble_samples([]) == ()
    assert policy_span([]) is None


def test_policy_span_covers_every_version_that_sampled() -> None:
    mixed = record(
        completion=(3, 4, 5),
        version_spans=(
            VersionSpan(version=4, start=0, end=1),
            VersionSpan(version=6, start=1, end=3),
        ),
    )
    assert policy_span([mixed, record(1, version=5)]) == PolicySpan(oldest=4, newest=6)
    (sample,) = assemble_samples([mixed])
    assert sample.versions == (-1, -1, 4, 6, 6)
